"""Phases: torch's own numbers, properly nested."""

from __future__ import annotations

import itertools
import math
import threading
from collections import defaultdict

import pytest
import torch
from torch._dynamo.utils import (
    ChromiumEventLogger,
    compilation_time_metrics,
    dynamo_timed,
    get_chromium_event_logger,
)

from tcw.compiler.inductor import timed_phases
from tcw.compiler.trace.records import Phase
from tests.cpu.models import Broken
from tests.cpu.recorded import Recorded, record, without_codegen

RENAMED = {
    "_compile.compile_inner": "entire_frame_compile",
    "OutputGraph.call_user_compiler": "backend_compile",
    "backward._backward_impl": "entire_backward_compile",
}
"""Phases whose event has a separate name (`phase_name` of `dynamo_timed`)."""

SUMS = {"get_fake_value", "create_proxy", "wrap_to_fake_tensor_and_record", "variable_builder_call"}
"""Metrics that are not phases: counters that torch adds up within `bytecode_tracing`."""


@pytest.fixture(scope="module")
def training():
    with record((timed_phases.HOOK,)) as recorded:
        compilation_time_metrics.clear()
        torch.compile(Broken(), backend=without_codegen)(torch.randn(4, 8)).backward()
        timed = {name: list(values) for name, values in compilation_time_metrics.items()}
    return recorded, {name: values for name, values in timed.items() if values}


def children(recorded: Recorded) -> dict[int | None, list[Phase]]:
    found = defaultdict(list)
    for phase in recorded.all(Phase):
        found[phase.parent].append(phase)
    return found


def test_every_phase_and_its_seconds_are_torchs_own(training):
    recorded, timed = training
    ours = defaultdict(list)
    for phase in recorded.all(Phase):
        ours[phase.name].append(phase.seconds)
    timed = {RENAMED.get(n, n): values for n, values in timed.items() if n not in SUMS}
    assert set(timed) | {"dynamo"} == set(ours)
    for name, values in timed.items():
        assert ours[name] == pytest.approx(values, abs=2e-6), name


def test_children_lie_inside_their_parent_and_do_not_overlap(training):
    recorded, _ = training
    by_id = {phase.id: phase for phase in recorded.all(Phase)}
    assert len(by_id) == len(recorded.all(Phase))
    slack = 1e-6
    for parent, inner in children(recorded).items():
        inner.sort(key=lambda phase: phase.start)
        if parent is not None:
            outer = by_id[parent]
            assert inner[0].start >= outer.start - slack
            assert max(p.start + p.seconds for p in inner) <= outer.start + outer.seconds + slack
        for first, second in itertools.pairwise(inner):
            if first.thread == second.thread:
                assert first.start + first.seconds <= second.start + slack


def test_self_times_add_up_to_the_total(training):
    recorded, _ = training
    inner = children(recorded)

    def self_times(phase: Phase) -> float:
        below = inner[phase.id]
        own = phase.seconds - sum(child.seconds for child in below)
        assert own >= -1e-6
        return own + sum(map(self_times, below))

    roots = inner[None]
    assert {root.name for root in roots} >= {"dynamo"}
    for root in roots:
        assert math.isclose(self_times(root), root.seconds, abs_tol=1e-6)


def test_phases_know_their_compile(training):
    recorded, _ = training
    found = {(p.name, p.compile_id) for p in recorded.all(Phase)}
    for compile_id in ("0/0", "1/0"):
        assert ("backend_compile", compile_id) in found
        assert ("entire_backward_compile", compile_id) in found


def test_a_phase_that_raises_ends():
    with (
        record((timed_phases.HOOK,)) as recorded,
        pytest.raises(ValueError, match="theirs"),
        dynamo_timed("outer"),
        dynamo_timed("inner"),
    ):
        raise ValueError("theirs")
    inner, outer = recorded.all(Phase)
    assert (inner.name, outer.name) == ("inner", "outer")
    assert (inner.parent, outer.parent) == (outer.id, None)


def test_what_torch_forgets_is_no_parent():
    logger = get_chromium_event_logger()
    with record((timed_phases.HOOK,)) as recorded:
        logger.log_event_start("lost", 1, {})
        logger.reset()
        with dynamo_timed("after"):
            pass
    (phase,) = recorded.all(Phase)
    assert (phase.name, phase.parent) == ("after", None)


def test_threads_have_stacks_of_their_own():
    def work() -> None:
        with dynamo_timed("there"):
            pass

    with record((timed_phases.HOOK,)) as recorded, dynamo_timed("here"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    there, here = recorded.all(Phase)
    assert (there.name, there.parent) == ("there", None)
    assert there.thread != here.thread


def test_a_clock_that_is_set_back_keeps_children_inside():
    with record((timed_phases.HOOK,)) as recorded:
        logger = get_chromium_event_logger()
        logger.log_event_start("outer", 5_000_000_000, {})
        logger.log_event_start("inner", 4_000_000_000, {})
        logger.log_event_end("inner", 9_000_000_000, {}, 4_000_000_000, False)
        logger.log_event_end("outer", 6_000_000_000, {}, 5_000_000_000, False)
    inner, outer = recorded.all(Phase)
    assert inner.start >= outer.start
    assert inner.start + inner.seconds <= outer.start + outer.seconds


def test_it_is_put_back():
    before = ChromiumEventLogger.log_event_start, ChromiumEventLogger.log_event_end
    with record((timed_phases.HOOK,)):
        assert ChromiumEventLogger.log_event_start is not before[0]
    assert (ChromiumEventLogger.log_event_start, ChromiumEventLogger.log_event_end) == before
