"""Each kind of edit on source text: what it writes, what it refuses, and that lines stay."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.protocol.edits import KINDS, Edit, EditError, by_file, edited, read_edit, relative

SOURCE = """\
import math
import torch
import torch.nn.functional as F

@torch.compiler.disable
def aside(x):
    return x + 1

@torch._dynamo.disable(recursive=False)
def other(x):
    return x

aside2 = torch.compiler.disable(other)

def model(x, mask, keep=None):
    print("a", tuple(x.shape),
          x.mean())  # how far
    print("b", x.size(), "ß", x.shape); y = x * 2
    scale = float(x.sum()) + x.max().item()
    assert y.sum() > 0, "no"
    half = math.exp(x.min()) + math.exp(0.5)
    if y.abs().max() > 8:
        y = y.clamp(-8, 8)
    a = F.scaled_dot_product_attention(y, y, y, attn_mask=mask)
    b = F.scaled_dot_product_attention(y, y, y, mask, 0.0)
    c = F.scaled_dot_product_attention(
        y, y, y,
        is_causal=False,
        attn_mask=mask,
    )
    print(
        "done",
    )
    return (a + b
            + c * scale)
"""
LINES = SOURCE.split("\n")


def changed(*texts: str) -> dict[int, str]:
    """Line -> its new text, for lines that differ."""
    after = edited(SOURCE, [read_edit(text) for text in texts]).split("\n")
    assert len(after) == len(LINES)
    pairs = enumerate(zip(LINES, after, strict=True), 1)
    return {number: new for number, (old, new) in pairs if old != new}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ("drop:17", {16: "    (None", 17: ")  # how far"}),
        ("drop:18", {18: "    pass; y = x * 2"}),
        ("drop:20", {20: "    pass"}),
        ("text:18", {18: '    print("b", f"{x.size()}", "ß", f"{x.shape}"); y = x * 2'}),
        ("item:19", {19: "    scale = (x.sum()) + x.max()"}),
        ("torch-math:21", {21: "    half = torch.exp(x.min()) + torch.exp(0.5)"}),
        ("always:22", {22: "    if True:"}),
        ("no-mask:24", {24: LINES[23].replace("=mask", "=None")}),
        ("causal:24", {24: LINES[23].replace("=mask", "=None, is_causal=True")}),
        ("causal:25", {25: LINES[24].replace("mask, 0.0", "None, 0.0, is_causal=True")}),
        ("causal:28", {28: "        is_causal=True,", 29: "        attn_mask=None,"}),
        ("undisable:5", {5: ""}),
        ("undisable:9", {9: ""}),
        ("undisable:13", {13: "aside2 = other"}),
        (
            "later:16",
            {
                16: "    (None",
                17: ")  # how far",
                34: "    _result = (a + b",
                35: "            + c * scale); print('a', tuple(x.shape), x.mean()); "
                "return _result",
            },
        ),
    ],
)
def test_what_each_kind_writes(edit: str, expected: dict[int, str]) -> None:
    assert changed(edit) == expected


def test_several_edits_are_made_together() -> None:
    found = changed("drop:16", "always:22", "no-mask:24", "no-mask:25")
    assert set(found) == {16, 17, 22, 24, 25}
    assert changed("drop:16", "drop:16") == changed("drop:16")


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("drop:19", "no call statement or assertion is on that line"),
        ("later:20", "no call statement is on that line"),
        ("undisable:16", "no torch.compiler.disable is on that line"),
        ("item:18", r"no \.item\(\) or float\(\) is on that line"),
        ("torch-math:19", "no math function"),
        ("always:19", "no `if`"),
        ("text:31", "does not print a size"),
        ("no-mask:19", "no scaled_dot_product_attention"),
        ("drop:4", "no statement is on line 4"),
        ("drop:99", "no statement is on line 99"),
        ("vanish:3", "no edit 'vanish'"),
    ],
)
def test_what_cannot_be_made_says_why(edit: str, why: str) -> None:
    with pytest.raises(EditError, match=f"{edit}.*{why}"):
        changed(edit)


@pytest.mark.parametrize("edits", [("later:18", "later:31"), ("drop:18", "later:18")])
def test_two_edits_of_one_place_are_refused(edits: tuple[str, ...]) -> None:
    with pytest.raises(EditError, match="changes the same place"):
        changed(*edits)


def test_what_is_bound_again_is_not_moved() -> None:
    text = "def f(x):\n    print(x)\n    x = x + 1\n    return x\n"
    with pytest.raises(EditError, match="x is assigned again after it"):
        edited(text, [Edit("later", 2)])


@pytest.mark.parametrize(
    "body",
    [
        "    print(1)\n    if x:\n        return x\n    return -x\n",
        "    for _ in x:\n        print(1)\n    return x\n",
        "    print(1)\n",
    ],
)
def test_only_before_a_single_return_it_is_moved(body: str) -> None:
    line = 1 + next(n for n, text in enumerate(body.split("\n"), 1) if "print" in text)
    with pytest.raises(EditError):
        edited(f"def f(x):\n{body}", [Edit("later", line)])


def test_moved_edits_mean_the_same() -> None:
    text = "said = []\ndef f(x):\n    said.append(x)\n    y = x + 1\n    return y\n"
    names: dict[str, object] = {}
    exec(edited(text, [Edit("later", 3)]), names)
    assert names["f"](1) == 2  # type: ignore[operator]
    assert names["said"] == [1]


@given(
    st.lists(
        st.sampled_from([
            "    print(x)", "    print(\n        x,\n    )", "    y = x.sum().item()", "    pass",
            "    if x > 1:\n        print('ä', x)", "    # words", "", "    assert x > 0",
            "    z = float(x) if x else 0", "    logging.info('%s', x); k = 1",
            "    w = '''\n  print(x)\n'''",
        ]),
        max_size=12,
    ),
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
def test_lines_keep_their_numbers_on_any_text(
    parts: list[str], kind: str, line: int, end: str
) -> None:
    text = end.join(["def f(x):", *parts, "    return x", ""]).replace("\r\n", "\n")
    text = text.replace("\n", end)
    try:
        after = edited(text, [Edit(kind, line)])
    except EditError:
        return
    ast.parse(after)
    before_lines, after_lines = text.split(end), after.split(end)
    assert len(before_lines) == len(after_lines)
    assert after != text
    differ = [n for n, pair in enumerate(zip(before_lines, after_lines, strict=True), 1)
              if pair[0] != pair[1]]  # fmt: skip
    statement = next(
        (
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.stmt)
            and node.lineno <= line <= (node.end_lineno or 0)
            and not isinstance(node, ast.FunctionDef)
        ),
        None,
    )
    assert statement is not None
    last = len(before_lines) - 1
    inside = set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    assert set(differ) <= inside | ({last} if kind == "later" else set())


def test_each_line_ends_as_it_did() -> None:
    """Also where some end with a carriage return, others do not, and the file has a mark first."""
    text = "\ufeffdef f(x):\r\n    print(x)\n    return x\r\n"
    assert edited(text, [Edit("drop", 2)]) == text.replace("print(x)", "pass")


@pytest.mark.parametrize("letter", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_what_ends_a_line_for_nobody_but_str_splitlines_ends_none(letter: str) -> None:
    text = f"s = 'a{letter}b'\nprint(s)\n"
    assert edited(text, [Edit("drop", 2)]) == f"s = 'a{letter}b'\npass\n"


def test_edits_are_read_as_they_are_written() -> None:
    for text in ("drop:15", "drop:layers/norm.py:15", "later:a:b.py:3"):
        assert str(read_edit(text)) == text
    for text in ("drop", "drop:", ":3", "drop:0", "drop:x", "drop:-1", ""):
        with pytest.raises(EditError):
            read_edit(text)


def test_files_are_found_from_the_folder_of_the_one_that_is_run(tmp_path: Path) -> None:
    main = tmp_path / "model.py"
    found = by_file(["drop:1", "drop:inner/a.py:2", "item:3"], str(main))
    assert {file: [edit.line for edit in edits] for file, edits in found.items()} == {
        str(main): [1, 3],
        str(tmp_path / "inner" / "a.py"): [2],
    }
    assert relative(str(main), str(main)) == ""
    assert relative(str(tmp_path / "inner" / "a.py"), str(main)) == "inner/a.py"
    assert relative("/usr/lib/x.py", str(main)) is None
    assert relative(str(tmp_path / "lib/site-packages/x.py"), str(main)) is None
