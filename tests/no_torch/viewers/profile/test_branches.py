"""An `if` that goes one way in eager and another under capture is one finding."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.records import AnyRecord
from tests.no_torch.profile_building import Call
from tests.no_torch.viewers.profile.conftest import profiled

ELSE = """\
def forward(x):
    if torch.compiler.is_compiling():
        y = ours(x)
        y = ours(y)
    else:
        y = theirs(x)
    return y
"""
LEAVES = """\
def forward(x):
    if not torch.compiler.is_compiling():
        if x.ndim > 1:
            return theirs(x)

    return ours(x)
"""
STRAIGHT = """\
def forward(x):
    if x.ndim > 1:
        y = theirs(x)
    z = ours(x)
    return y + z
"""


def _call(code: str, ours: int, theirs: int) -> Call:
    call = Call(code=code)
    kernel = call.kernel("nest_ours_0", "ours", [ours], 60.0, ("ours",))
    other = call.operation("aten.theirs.default", theirs, 20.0)
    call.region("ours", [kernel], [], 1.0)
    call.region("theirs", [], [other], 1.0)
    return call


def _titles(records: list[AnyRecord]) -> list[str]:
    return [cause.title for cause in profiled(records).causes]


@pytest.mark.parametrize(("code", "ours", "theirs"), [(ELSE, 4, 6), (LEAVES, 6, 4)])
def test_both_arms_are_one_finding(code: str, ours: int, theirs: int) -> None:
    (cause,) = profiled(_call(code, ours, theirs).done()).causes
    assert cause.title == "the `if` takes a different branch under capture: ours instead of theirs"
    assert cause.place is not None
    assert cause.place.line == 2
    assert cause.seconds == pytest.approx(40e-6)
    assert cause.notes == (
        f"only compiled: line {ours}, 60.0 µs: nest_ours_0",
        f"only in eager: line {theirs}, 20.0 µs: aten.theirs.default",
    )


def test_lines_that_follow_each_other_are_two_findings() -> None:
    assert _titles(_call(STRAIGHT, 4, 3).done()) == [
        "ours exists only under capture",
        "theirs is not in the compiled code",
    ]


def test_a_sum_of_gradients_may_be_in_another_kernel() -> None:
    """It is not said to be missing."""
    call = Call()
    call.phase = "backward"
    call.region("add", [], [call.operation("aten.add.Tensor", 25, 20.0)], 1.0)
    assert _titles(call.done()) == ["add has no step of its own in the compiled call"]


def test_an_arm_that_both_sides_run_decides_nothing() -> None:
    call = _call(ELSE, 4, 6)
    here = call.kernel("nest_theirs_0", "theirs", [6], 20.0, ("theirs",))
    call.region("theirs again", [here], [call.operation("aten.theirs.default", 6, 20.0)], 1.0)
    assert not [title for title in _titles(call.done()) if "another way" in title]


def test_a_source_that_does_not_parse() -> None:
    assert len(_titles(_call("def forward(x:\n  if", 1, 2).done())) == 2


def test_an_arm_whose_work_is_in_kernels_of_other_lines() -> None:
    """Inductor fuses it with what follows: how long it takes there is not known, and what eager ran
    in the other arm was replaced, not removed."""
    call = Call(code=ELSE)
    kernel = call.kernel("cpp_fused_ours_return_0", "ours", [4, 7], 60.0, ("ours",))
    after = call.operation("aten.mul.Tensor", 7, 58.0)
    other = call.operation("aten.theirs.default", 6, 20.0)
    call.region("mul", [kernel], [after], 5.0)
    call.region("theirs", [], [other], 1.0)
    (cause,) = profiled(call.done()).causes
    assert cause.title == "the `if` takes a different branch under capture, without theirs"
    assert cause.seconds == pytest.approx(-20e-6)
    assert cause.notes == (
        "only compiled: line 4, fused into kernels of other lines, whose time includes it: "
        "cpp_fused_ours_return_0",
        "only in eager: line 6, 20.0 µs: aten.theirs.default",
    )
