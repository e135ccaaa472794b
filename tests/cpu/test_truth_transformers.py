"""What we record of a model's capture equals, exactly, what torch itself says of it.

The account has graphs and the ops of each, graph breaks with code and site, guards of each compile,
and recompiles with their reasons. It is taken at each step while the batch goes 2, 3, 4, on models
of `transformers` and on the sample models.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tcw.sample_models
from tcw.compiler.trace.records import FrameEnd, FrameStart, GraphBreak, Guards, Recompile
from tests.cpu import same_as_log
from tests.cpu.transformer_models import MODELS
from tests.cpu.truth import Told, run_alone, run_recorded
from tests.long import mostly_long

SAMPLES = sorted(
    path.stem
    for path in Path(tcw.sample_models.__file__).parent.glob("*.py")
    if path.stem != "__init__"
)

REFUSED = "Attempt to trace generator"
"""Counted by torch, but in no frame: a generator is refused before it gets a compile id."""


def sample_calls(name: str) -> list[Callable[[], object]]:
    module = importlib.import_module(f"sample_models.{name}")
    inputs = module.example_inputs() if callable(module.example_inputs) else module.example_inputs
    compiled = torch.compile(module.model, backend="eager")

    def call(given: Any) -> object:
        if isinstance(given, dict):
            return compiled(**given)
        if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict):
            return compiled(*given[0], **given[1])
        return compiled(*given)

    sets = inputs if isinstance(inputs, list) else [inputs]
    return [lambda given=given: call(given) for given in sets]


SOME = ("gpt2-generate", "mixtral")
"""Of the models of `transformers`: a loop of calls, and experts that are chosen by data."""


@pytest.fixture(
    scope="module",
    params=mostly_long((*MODELS, *SAMPLES), (*SOME, *SAMPLES)),
)
def told(request: pytest.FixtureRequest) -> Told:
    torch.manual_seed(0)
    name = request.param
    result = run_recorded(name, MODELS[name]() if name in MODELS else sample_calls(name))
    print(f"{name}: {result.torch.row()}")
    return result


def test_graphs_and_their_ops(told: Told) -> None:
    assert told.ours.graphs == told.torch.graphs
    assert told.ours.graphs


def test_breaks_by_code_and_site(told: Told) -> None:
    assert told.ours.breaks == told.torch.breaks


def test_guards_of_each_compile(told: Told) -> None:
    assert told.ours.guards == told.torch.guards
    assert told.ours.tree_nodes == told.torch.tree_nodes


def test_recompiles_and_reasons_by_call(told: Told) -> None:
    assert told.ours.recompiles == told.torch.recompiles
    if told.name in MODELS:  # the batch of 3 is new to every one of them
        assert told.ours.recompiles[2]


def test_frames(told: Told) -> None:
    assert told.ours.frames == told.torch.frames
    started = {record.compile_id for record in told.records if isinstance(record, FrameStart)}
    ended = [record for record in told.records if isinstance(record, FrameEnd)]
    assert started == {record.compile_id for record in ended}
    assert {record.compile_id: record.guards for record in ended if record.guards} == {
        name: count for name, count in told.torch.guards.items() if count
    }


def test_counters_of_dynamo(told: Told) -> None:
    """`torch._dynamo.utils.counters`, which Dynamo keeps apart from the structured trace."""
    stats = told.counters["stats"]
    assert stats["unique_graphs"] == len(told.ours.graphs)
    assert stats["calls_captured"] == sum(told.ours.graphs.values())
    counted = sum(
        count
        for name in ("graph_break", "unimplemented")
        for reason, count in told.counters.get(name, {}).items()
        if not reason.startswith(REFUSED)
    )
    breaks = [record for record in told.records if isinstance(record, GraphBreak)]
    # in a loop the break is raised once more, to give up the whole frame
    assert counted == len(breaks) + sum("graph break in loop" in record.then for record in breaks)


def test_nothing_went_wrong_on_the_way(told: Told) -> None:
    assert told.warnings == []


def test_the_log_says_the_same(told: Told) -> None:
    """torch's log (TORCH_TRACE) of the same run, read back."""
    read = same_as_log.read_log(told.log)
    for facts in (same_as_log.frames, same_as_log.breaks, same_as_log.recompiles):
        assert facts(read) == facts(told.records), facts.__name__
    # where frames are nested in resume functions, torch's text leaves some of them out
    stacks = zip(same_as_log.stacks(read), same_as_log.stacks(told.records), strict=True)
    assert all(set(theirs) <= set(ours) and theirs[-1:] == ours[-1:] for theirs, ours in stacks)
    assert same_as_log.guards(read) == same_as_log.guards(told.records)
    captured = same_as_log.graphs(told.records, ("captured",))
    assert same_as_log.graphs(read, ("captured",)) == captured
    ours, theirs = same_as_log.lines(told.records), same_as_log.lines(read)
    assert theirs.items() <= ours.items()
    assert len(theirs) > len(ours) // 2


def test_each_recompile_says_what_failed(told: Told) -> None:
    known = {record.compile_id for record in told.records if isinstance(record, Guards)}
    for record in told.records:
        if isinstance(record, Recompile):
            assert record.location is not None
            assert record.failed
            for failed in record.failed:
                assert failed.entry in known
                assert failed.guard
                assert failed.kind
                assert failed.expected
                assert failed.seen
            assert record.advice


@pytest.mark.parametrize(
    "name", ["graph_breaks", "recompiles", pytest.param("troubled_block", marks=pytest.mark.long)]
)
def test_torch_does_the_same_when_nobody_watches(name: str) -> None:
    told = run_recorded(name, sample_calls(name))
    assert run_alone(sample_calls(name)) == told.torch
