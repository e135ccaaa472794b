"""Compiled code knows the kernel's line that it comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.viewers.panes.assembly import CodeLine, code_lines

NAME = "triton_per_fused_softmax_0"
FILE = f"{NAME}.9c28f1.py"

PTX = f"""\
.version 8.7
.visible .entry {NAME}(
	.param .u64 p0
)
{{
	.loc	1 34 42                         // {FILE}:34:42
	shl.b32 	%r138, %r134, 10;
$L__tmp1:
	.loc	2 169 15                        // triton_helpers.py:169:15 @[ triton_helpers.py:182:29 @[ {FILE}:40:37 ] ]
	max.f32 	%f1, %f2, %f3;            // a comment
	.loc	3 7 1                           // elsewhere.py:7:1
	ret;
}}
	.section	.debug_abbrev
	.b8 1                                   // Abbreviation Code
"""  # noqa: E501
SASS = f"""\
.text.{NAME}:
	//## File "{FILE}", line 34
        /*0130*/              @!P0 LDG.E.128 R12, desc[UR8][R2.64] ;
	//## File "triton_helpers.py", line 169
        /*0140*/                   FMNMX R0, R1, R2, !PT ;
.L_x_6:
"""
LLIR = """\
define ptx_kernel void @f() !dbg !5 {
  %1 = shl i32 %0, 10, !dbg !18
  %2 = call float @max(), !dbg !19
  ret void
}
!18 = !DILocation(line: 34, column: 42, scope: !5)
!19 = !DILocation(line: 169, column: 15, scope: !37, inlinedAt: !20)
!20 = distinct !DILocation(line: 40, column: 37, scope: !5)
"""
TTIR = f"""\
#loc = loc("{FILE}":18:0)
#loc1 = loc(unknown)
#loc5 = loc("triton_helpers.py":169:15)
#loc15 = loc("{FILE}":40:37)
#loc78 = loc("tmp6"(#loc15))
module {{
  tt.func public @{NAME}(%x: i32 loc("x"(#loc))) {{
    %c = arith.constant 1 : i32 loc(#loc1)
    %0 = arith.maxnumf %a, %b : f32 loc(#loc90)
    %1 = arith.addf %a, %b : f32 loc("tmp9"("{FILE}":41:3))
    ^bb0(%y: f32 loc(callsite(#loc1 at #loc78))):
  }} loc(#loc)
}} loc(#loc)
#loc90 = loc(callsite(#loc5 at #loc78))
"""


def origins(lines: tuple[CodeLine, ...]) -> dict[str, int]:
    return {line.text.strip(): line.origin for line in lines if not line.only_places}


def test_ptx() -> None:
    lines = code_lines(PTX, "ptx", NAME)
    found = origins(lines)
    assert found["shl.b32 \t%r138, %r134, 10;"] == 34
    assert found["max.f32 \t%f1, %f2, %f3;"] == 40
    assert found["ret;"] == 0
    assert ".b8 1" not in found
    assert "$L__tmp1:" not in found


def test_sass() -> None:
    found = origins(code_lines(SASS, "sass", NAME))
    assert found["0130  @!P0 LDG.E.128 R12, desc[UR8][R2.64] ;"] == 34
    assert found["0140  FMNMX R0, R1, R2, !PT ;"] == 0
    assert found[".L_x_6:"] == 0


def test_llvm() -> None:
    found = origins(code_lines(LLIR, "llir", NAME))
    assert found["%1 = shl i32 %0, 10"] == 34
    assert found["%2 = call float @max()"] == 40
    assert found["ret void"] == 0


def test_mlir() -> None:
    found = origins(code_lines(TTIR, "ttir", NAME))
    assert found["%c = arith.constant 1 : i32"] == 0
    assert found["%0 = arith.maxnumf %a, %b : f32"] == 40
    assert found["^bb0(%y: f32):"] == 40
    assert found["}"] in (0, 18)
    assert not any("loc(" in line for line in found)


@pytest.mark.parametrize("language", ["ptx", "sass", "llir", "ttir", "ttgir"])
@given(body=st.text(max_size=400))
def test_any_text_keeps_its_lines(language: str, body: str) -> None:
    lines = code_lines(body, language, NAME)  # type: ignore[arg-type]
    assert [line.number for line in lines] == list(range(1, len(body.split("\n")) + 1))
    assert all(line.origin >= 0 for line in lines)
