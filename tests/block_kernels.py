"""The kernels of the synthetic trace, and which of their lines computes what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tcw.compiler.trace.loop_nests import loop_lines
from tcw.compiler.trace.records import Kernel, KernelBinary, KernelLine, Location, Node

KERNELS: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {
    "0/0/forward": [
        ("cpp_fused_native_layer_norm_0", "layer norm", ("op0", "op1", "op2", "op3", "op4")),
        ("extern_kernels.addmm", "addmm qkv", ("op5",)),
        (
            "cpp_fused_clone_permute_select_transpose_view_1",
            "q k v copies",
            ("op6", "op7", "op15"),
        ),
        ("extern_kernels.bmm", "bmm q@k", ("op8",)),
        (
            "cpp_fused__softmax_abs_all_amax_eq_mul_ne_sub_view_2",
            "softmax",
            ("op9", "op10", "op11", "op12", "op13", "op14"),
        ),
        ("extern_kernels.bmm", "bmm @v", ("op16",)),
        ("cpp_fused_clone_transpose_view_3", "merge heads", ("op17",)),
        ("extern_kernels.addmm", "addmm proj", ("op18",)),
        ("cpp_fused_add_view_4", "add", ("op19",)),
    ],
    "1/0/forward": [
        (
            "cpp_fused_abs_gt_max_native_layer_norm_0",
            "layer norm, flag",
            ("op0", "op1", "op2", "op3", "op4", "op5", "op6"),
        ),
    ],
    "2/0/forward": [
        ("extern_kernels.addmm", "addmm fc1", ("op0",)),
        ("cpp_fused_gelu_view_0", "gelu", ("op1",)),
        ("extern_kernels.addmm", "addmm fc2", ("op2",)),
        ("cpp_fused_add_view_1", "add", ("op3",)),
    ],
}
SECTIONS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "cpp_fused_native_layer_norm_0": [
        (r"#pragma omp for", ("op0",)),
        (r"#pragma omp single", ("op1",)),
        (r"#pragma omp for", ("op2",)),
        (r"#pragma omp single", ("op3",)),
        (r"#pragma omp for", ("op4",)),
    ],
    "cpp_fused_clone_permute_select_transpose_view_1": [
        (r"#pragma omp for", ("op6",)),
        (r"#pragma omp for", ("op7",)),
        (r"#pragma omp for", ("op15",)),
    ],
    "cpp_fused__softmax_abs_all_amax_eq_mul_ne_sub_view_2": [
        (r"float tmp_acc0 = -std", ("op9", "op10", "op11")),
        (r"float tmp_acc0 = 0", ("op12",)),
        (r"tmp17.exp", ("op12", "op13")),
        (r"local_buffer_data_0 \+ static_cast<int64_t>\(x1\), ", ("op14",)),
    ],
    "cpp_fused_abs_gt_max_native_layer_norm_0": [
        (r"#pragma omp for", ("op0",)),
        (r"#pragma omp single", ("op1",)),
        (r"#pragma omp for", ("op2",)),
        (r"#pragma omp single", ("op3",)),
        (r"#pragma omp for", ("op4",)),
        (r"tmp_acc0_arr", ("op5",)),
    ],
}
"""From which line on the statements of a kernel compute which scheduler nodes."""


class Kernels:
    """Writes a graph's kernels, counted through the whole trace."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.count = 0

    def record(
        self,
        out: Any,
        graph: str,
        like: str,
        step: int,
        name: str,
        label: str,
        operations: tuple[str, ...],
        nodes: dict[str, Node],
    ) -> None:
        made_of = {row[0]: row[2] for row in self.data["scheduler"][like]}
        origins = {origin for operation in operations for origin in made_of[operation]}
        ordered = tuple(name for name in nodes if name in origins)
        text = dict(self.data["kernels"][like]).get(name, "")
        sections = SECTIONS.get(name, [(r"#pragma omp for|for\(", operations)])
        lines = _kernel_lines(text, sections, made_of, nodes) if text else ()
        out.add(
            Kernel(
                id=f"k{self.count}",
                graph=graph,
                name=name,
                label=label,
                language="cpp" if text else "aten",
                text=out.text(text),
                nodes=operations,
                origins=ordered,
                locations=_locations(nodes[origin] for origin in ordered),
                lines=lines,
                loops=loop_lines(text),
                loop_nests=_outermost_loops(text),
                step=step,
            )
        )
        self.count += 1

    def predicted(self, out: Any, graph: str, nodes: dict[str, Node]) -> None:
        text = (Path(__file__).parent / "data" / "softmax_triton.py.txt").read_text()
        body = text.splitlines()
        made = [name for name, node in nodes.items() if node.inferred]
        late = ("where_self", "exp", "sum_1", "div")
        lines = []
        for number, line in enumerate(body, start=1):
            if not line.startswith("    tmp") and "tl.store" not in line:
                continue
            if number >= next(i for i, text_ in enumerate(body, 1) if "libdevice.exp" in text_):
                names: tuple[str, ...] = late[1:]
            elif "tl.load" in line:
                names = ("bmm",)
            else:
                names = tuple(made)
            lines.append(_line(number, names, nodes))
        kernel = f"k{self.count}"
        out.add(
            Kernel(
                id=kernel,
                graph=graph,
                name="triton_per_fused__softmax_abs_all_amax_eq_mul_ne_sub_view_4",
                label="softmax",
                language="triton",
                text=out.text(text),
                nodes=("op9", "op10", "op11", "op12", "op13", "op14"),
                origins=(*made, *late),
                locations=_locations(nodes[name] for name in (*made, *late)),
                lines=tuple(lines),
                loop_nests=1,
                predicted=True,
            )
        )
        out.add(
            KernelBinary(
                kernel=kernel,
                arch="sm_90",
                configuration="XBLOCK=1 R0_BLOCK=128 warps=2 stages=1",
                ptx=out.text(PTX),
                sass=out.text(SASS),
                registers=22,
                shared_bytes=16,
                spill_bytes=0,
                resident_warps=64,
                most_warps=64,
                seconds=0.42,
            )
        )
        self.count += 1


def _locations(nodes: Any) -> tuple[Location, ...]:
    found = {node.location.line: node.location for node in nodes if node.location}
    return tuple(found[line] for line in sorted(found))


def _line(number: int, names: tuple[str, ...], nodes: dict[str, Node]) -> KernelLine:
    inferred = all(nodes[name].inferred for name in names)
    exact = [nodes[name] for name in names if not nodes[name].inferred]
    locations = _locations(exact or [nodes[name] for name in names])
    return KernelLine(line=number, nodes=names, locations=locations, inferred=inferred)


def _outermost_loops(text: str) -> int:
    """Loops of a kernel as Inductor writes it that stand in no other."""
    loops = [len(line) - len(line.lstrip()) for line in text.splitlines() if "for(int64_t" in line]
    return loops.count(min(loops)) if loops else 0


def _kernel_lines(
    text: str,
    sections: list[tuple[str, tuple[str, ...]]],
    made_of: dict[str, list[str]],
    nodes: dict[str, Node],
) -> tuple[KernelLine, ...]:
    """Statements after a section's first match belong to its scheduler nodes."""
    rest, current = list(sections), ()
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        if rest and re.search(rest[0][0], line):
            current = rest.pop(0)[1]  # type: ignore[assignment]
        words = line.strip()
        if current and words.endswith(";") and "inductor_cpu" not in words:
            names = [name for operation in current for name in made_of[operation]]
            computing = [name for name in names if "view" not in name and "permute" not in name]
            if current == ("op12",):
                computing = [name for name in computing if nodes[name].inferred]
            lines.append(_line(number, tuple(dict.fromkeys(computing)), nodes))
    return tuple(lines)


PTX = """//
.version 8.7
.target sm_90a
.address_size 64
.visible .entry triton_per_fused__softmax_4(
	.param .u64 .ptr .global .align 1 in_out_ptr0,
	.param .u32 xnumel
)
.reqntid 64
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<42>;
	ld.param.b64 	%rd2, [in_out_ptr0];
	mov.u32 	%r3, %ctaid.x;
	ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];
	mul.f32 	%r5, %r1, 0f3E000000;
	ex2.approx.ftz.f32 	%r17, %r16;
	shfl.sync.bfly.b32 	%r21, %r20, 16, 31, -1;
	st.global.v2.b32 [ %rd1 + 0 ], { %r40, %r41 };
	ret;
}
"""
SASS = """ LDC R1, c[0x0][0x28]
 S2R R0, SR_CTAID.X
 LDG.E.64 R4, desc[UR4][R2.64]
 FMUL R7, R4, 0.125
 MUFU.EX2 R9, R8
 SHFL.BFLY PT, R11, R10, 0x10, 0x1f
 STG.E.64 desc[UR4][R2.64], R12
 EXIT
"""
