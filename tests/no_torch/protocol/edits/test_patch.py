"""Patches: the results of our strict reader, `patch` and `git apply`, on any text and name."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.compiler.protocol.edits import Edit, EditError, applied, diff, edited

COMMANDS = {
    "patch": ["patch", "-p1", "-s", "--no-backup-if-mismatch", "-F", "0", "-i"],
    "git": ["git", "apply", "--whitespace=nowarn"],
}
SEPARATORS = "\f\v\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` splits, and neither Python nor `patch` does."""

PIECES = st.sampled_from([
    "x = 1", "-- victim", "++ victim", "@@ -1 +1 @@", "\\ No newline at end of file", "", " ", "-",
    "--- a/victim.py", "+++ b/victim.py", "diff --git a/victim.py b/victim.py", "\r", "a\rb", "\t",
    "Index: victim.py", "é", "\ufeff", "\u202e", "\x00"[:0], *SEPARATORS,
])  # fmt: skip
LINES = st.lists(st.lists(PIECES, max_size=3).map("".join), max_size=14)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["\n", ""]))


def made_by(command: str, patch: str, files: dict[str, str]) -> dict[str, bytes]:
    """All files of a folder after the command applied the patch there."""
    if shutil.which(COMMANDS[command][0]) is None:
        pytest.skip(f"no {command}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        for file, text in files.items():
            path = folder / "work" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        (folder / "kept.patch").write_bytes(patch.encode())
        done = subprocess.run(
            [*COMMANDS[command], "../kept.patch"],
            cwd=folder / "work",
            capture_output=True,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": name, "HOME": name},
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr, patch)
        return {
            str(path.relative_to(folder / "work")): path.read_bytes()
            for path in (folder / "work").rglob("*")
            if path.is_file()
        }


def check(command: str, pairs: dict[str, tuple[str, str]]) -> None:
    """The patch turns each first text into the second, and changes nothing else."""
    patch = "".join(diff(name, *pair) for name, pair in pairs.items())
    before = {"victim.py": "safe\n"} | {name: pair[0] for name, pair in pairs.items()}
    after = {"victim.py": "safe\n"} | {name: pair[1] for name, pair in pairs.items()}
    assert before | applied(patch, before) == after
    if patch:
        found = made_by(command, patch, before)
        assert found == {
            name: text.encode() for name, text in after.items() if text or name in found
        }


@pytest.mark.parametrize("command", COMMANDS)
@settings(max_examples=60)
@given(before=TEXTS.filter(bool), after=TEXTS.filter(bool), other=TEXTS.filter(bool))
def test_any_text_becomes_any_other(command: str, before: str, after: str, other: str) -> None:
    check(command, {"model.py": (before, after), "layers/norm.py": (other, other + "# end\n")})


SOURCE = st.lists(
    st.one_of(
        st.sampled_from(["print(x)", "y = 1", "", "# words", "'''", "\f", "  # -- a", "--x"]),
        st.text(st.sampled_from(f"ab#'\"-+@ {SEPARATORS}"), max_size=8).map(
            lambda text: f"# {text}"
        ),
    ),
    max_size=12,
)


@pytest.mark.parametrize("command", COMMANDS)
@settings(max_examples=60)
@given(
    lines=SOURCE,
    ends=st.lists(st.sampled_from(["\n", "\r\n"]), min_size=13, max_size=13),
    last=st.sampled_from(["print(x)", "print(x)\n", "print(x)\r\n", "print(x)\nx\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_edits_of_any_source(
    command: str, lines: list[str], ends: list[str], last: str, mark: str
) -> None:
    text = mark + "".join(map("".join, zip(lines, ends, strict=False))) + last
    number = 1 + text[: text.rindex("print")].count("\n")
    try:
        after = edited(text, [Edit("drop", number)])
    except EditError:
        return
    check(command, {"model.py": (text, after)})


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "name",
    [
        "my model.py", "a b/c d.py", "modèle.py", 'quo"te.py', "back\\slash.py", "a --> b.py",
        "--- a", "-p0.py", "\u202egpj.py", "a\u2028b.py", "😀.py", "…/..py", "..foo.py", "null",
        "x\xa0y.py", "$(touch owned).py", "'.py", "a.py 2020-01-01", "b/a/b.py",
    ],
)  # fmt: skip
def test_any_name_that_is_printed_or_quoted(command: str, name: str) -> None:
    check(command, {name: ("a\nb\n", "a\nc\n"), "model.py": ("1", "2")})


@pytest.mark.parametrize(
    "name",
    [
        "a\n--- a/victim.py\n+++ b/victim.py\n@@ -1 +1 @@\n-safe\n+owned\n", "a\rb", "a\tb",
        "a\x1b[31m", "a\x7fb", "a\udcffb", "", "../victim.py", "/etc/passwd",
        "a/../../victim.py", "a//b", ".", "./a",
    ],
)  # fmt: skip
def test_a_name_that_no_patch_carries_safely_is_refused(name: str) -> None:
    with pytest.raises(EditError, match="a patch cannot carry"):
        diff(name, "a\n", "b\n")


GOOD = diff("model.py", "a\nb\nc\n", "a\nB\nc\n")


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (GOOD + diff("victim.py", "safe\n", "owned\n"), "does not start an edited file"),
        (GOOD + GOOD, "does not start an edited file"),
        (GOOD.replace("-b", "-x"), "does not match the file"),
        (GOOD.replace("-1,3", "-2,3").replace("+1,3", "+2,3"), "does not match the file"),
        (GOOD.replace("+1,3", "+2,3"), "has the wrong line number"),
        (GOOD.replace("+1,3", "+1,2"), "beyond its hunk"),
        (GOOD.replace(" c\n", ""), "of the patch is not valid"),
        (GOOD + "words\n", "of the patch is not valid"),
        (GOOD + "\n", "of the patch is not valid"),
        ("Index: x\n" + GOOD, "of the patch is not valid"),
        (GOOD[:-1], "of the patch is not valid"),
        (GOOD.replace("-1,3", "-123456789,3"), "out of order"),
        (GOOD.replace("-1,3", "-" + "9" * 5000 + ",3"), "of the patch is not valid"),
    ],
)
def test_the_reader_takes_nothing_else(patch: str, why: str) -> None:
    with pytest.raises(EditError, match=why):
        applied(patch, {"model.py": "a\nb\nc\n"})


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_patch_never_changes_another_file(data: st.DataObject) -> None:
    """Cut, doubled or swapped lines: refused, or the same file with the same lines."""
    before, after = data.draw(TEXTS), data.draw(TEXTS)
    lines = diff("model.py", before, after).splitlines(keepends=True)
    shuffled = "".join(data.draw(st.lists(st.sampled_from(lines), max_size=20))) if lines else ""
    try:
        found = applied(shuffled, {"model.py": before})
    except EditError:
        return
    assert set(found) <= {"model.py"}


def test_of_equal_texts_there_is_none() -> None:
    assert diff("a.py", "x\n", "x\n") == ""
    assert applied("", {"a.py": "x\n"}) == {}
