from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace import refs
from tcw.viewers.panes import kernel
from tcw.viewers.panes.kernel import tidy
from tcw.viewers.panes.view import View
from tests.block_capture import FILE
from tests.block_trace import DATA


def kernels() -> list[str]:
    data = json.loads((DATA / "block.json").read_text())["kernels"]
    return [body for graph in data.values() for _, body in graph]


def test_tidied_text_is_shorter_and_keeps_every_statement() -> None:
    for body in kernels():
        tidied = tidy(body)
        words = "\n".join(line for _, line in tidied)
        assert "static_cast<int64_t>" not in words
        assert "at::vec" not in words
        left_out = set(range(1, body.count("\n") + 2)) - {number for number, _ in tidied}
        for number in left_out:
            line = body.split("\n")[number - 1].strip()
            flag = "integer_div_error" in line
            assert flag or line in ("{", "}", "") or line.startswith(("if(C10_LIKELY", "#include"))


def test_braces_of_blocks_are_left_out_in_pairs() -> None:
    body = "void k0(float* a) {\n  for (long i = 0; i < 8; ++i) {\n    a[i] = 1;\n  }\n}"
    assert [line for _, line in tidy(body)] == [
        "void k0(float* a)",
        "  for (long i = 0; i < 8; ++i)",
        "    a[i] = 1;",
    ]


@given(st.text())
def test_numbers_of_tidied_lines_are_those_of_the_text(body: str) -> None:
    count = body.count("\n") + 1
    numbers = [number for number, _ in tidy(body)]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= count for number in numbers)


def test_raw_is_the_text_itself(block: View) -> None:
    block.raw = True
    shown = kernel.content(block, 80)
    assert [row.text[5:] for row in shown.rows] == kernels()[0].split("\n")


def test_the_gutter_has_the_user_line(block: View) -> None:
    block.select(refs.source(FILE, 19))
    block.kernel = "k4"
    rows = {row.ref: row.text for row in kernel.content(block, 80).rows}
    assert rows[refs.kernel("k4", 88)].startswith("  19 ")
    assert rows[refs.kernel("k4", 32)].startswith(" ≈18 ")


def test_a_library_call_says_so(block: View) -> None:
    block.kernel = "k1"
    words = "\n".join(row.text for row in kernel.content(block, 80).rows)
    assert "extern_kernels.addmm" in words
    assert "no code is generated" in words


def test_binaries(block: View) -> None:
    block.language = "sass"
    shown = kernel.content(block, 80)
    assert shown.name == "sass"
    assert "predicted sm_90 · 22 registers" in shown.right[0][0]
    block.language = "ttir"
    assert "the trace has no TTIR" in kernel.content(block, 80).rows[1].text


def test_a_predicted_kernel_has_its_resources(block: View) -> None:
    """In the title of its code: how many of a processor's warps it leaves room for, too."""
    (predicted,) = (binary for binary in block.derived.binaries.values() if binary.registers == 22)
    known = msgspec.structs.replace(predicted, resident_warps=32, most_warps=64)
    block.derived.binaries[known.kernel] = known
    block.kernel, block.language = known.kernel, "triton"
    words = "".join(words for words, _ in kernel.content(block, 200).right)
    assert "predicted sm_90 · 22 registers" in words
    assert "50% occupancy" in words


def test_a_triton_kernel_starts_at_its_def() -> None:
    body = "import triton\n\n@triton.jit\ndef triton_(x):\n    tmp0 = x\n"
    assert kernel.without_decorators(body)[0] == (4, "def triton_(x):")
    assert len(kernel.without_decorators("no def at all\n")) == 2
