"""Breakpoints as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tcw.compiler.protocol.breakpoints import BreakpointError, parse
from tcw.compiler.protocol.commands import Breakpoint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.py:19", {"kind": "line", "file": "model.py", "line": 19}),
        ("19", {"kind": "line", "file": "here.py", "line": 19}),
        (":19", {"kind": "line", "file": "here.py", "line": 19}),
        ("op:softmax", {"kind": "op", "op": "softmax"}),
        ("stage:fusion", {"kind": "stage", "stage": "fusion"}),
        ("fuse", {"kind": "decision", "decision": "fuse"}),
        ("decision", {"kind": "decision"}),
        ("decision:vector", {"kind": "decision", "decision": "vector"}),
        ("decision:score<=2", {"kind": "decision", "number_name": "score", "at_most": 2}),
        (
            "fuse:bytes>=1e6, rule=domain",
            {
                "kind": "decision",
                "decision": "fuse",
                "number_name": "bytes",
                "at_least": 1e6,
                "rule": "domain",
            },
        ),
        ("rejection", {"kind": "rejection"}),
        ("first-rejection:op=exp", {"kind": "rejection", "once": True, "op": "exp"}),
        (
            "inductor/0/0/forward/fuse/amax+exp",
            {"kind": "decision", "id": "inductor/0/0/forward/fuse/amax+exp"},
        ),
        ("tcw/model.py:19", {"kind": "line", "file": "tcw/model.py", "line": 19}),
        ("break", {"kind": "break"}),
        ("recompile", {"kind": "recompile"}),
        ("miss", {"kind": "miss"}),
    ],
)
def test_what_is_written_is_what_is_meant(text: str, expected: dict[str, Any]) -> None:
    assert parse(text, number=3, file="here.py") == Breakpoint(number=3, **expected)


def test_a_file_that_is_there_is_named_whole(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.touch()
    assert parse(f"{file}:4", number=1).file == str(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rejections", "Did you mean 'rejection'?"),
        ("stage:fusoin", "Did you mean 'fusion'?"),
        ("fuse:big", "'big' is neither NAME>=NUMBER"),
        ("fuse:bytes>=many", "'many' is not a number"),
        ("fuse:bytes>=1,score<=2", "only one number can be tested"),
        ("op:", "part of a node's name"),
        ("", "There are FILE:LINE"),
        ("break:4x", "is not a breakpoint"),
    ],
)
def test_an_error_says_what_to_write(text: str, words: str) -> None:
    with pytest.raises(BreakpointError, match=words.replace("?", r"\?")):
        parse(text, number=1)
