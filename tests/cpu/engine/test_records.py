"""A recording of the tcw engine matches what the stages made."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import tcw.compiler.engine.compile as stages
import tcw.compiler.engine.targets as targets
from tcw.compiler.autograd import HOOKS as AUTOGRAD
from tcw.compiler.capture import HOOKS as CAPTURE
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.loops.graph import Call, Map, Reduce, Scan, Store
from tcw.compiler.loops.nest import Nest
from tcw.compiler.protocol.decision_records import decided_record
from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import (
    CacheLookup,
    Decided,
    FusionGroups,
    FusionRound,
    Kernel,
    Lowered,
    MemoryPlan,
    Partition,
    SchedulerNode,
    Wrapper,
)
from tcw.viewers.panes.loops import textbook_nest
from tcw.viewers.panes.nests import computes
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.summary import summarise
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.sections import SECTIONS
from tests.cpu.recorded import Recorded, record
from tests.decided import pairs_in


class Products:
    """The product of each stage, in order."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.fusions: list[Any] = []
        self.plans: list[Any] = []
        self.units: list[Any] = []


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorded, Products]:
    products = Products()
    patched = pytest.MonkeyPatch()
    patched.setenv("TCW_STRICT", "1")
    patched.setenv("TCW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    for place, name, kept in (
        (stages, "lower", products.graphs),
        (stages, "fuse", products.fusions),
        (stages, "plan", products.plans),
        (targets, "cpp_unit", products.units),
    ):
        original = getattr(place, name)

        def watched(*args: Any, original: Any = original, kept: list[Any] = kept) -> Any:
            kept.append(original(*args))
            return kept[-1]

        patched.setattr(place, name, watched)
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Softmax(-1))
    with record([*CAPTURE, *AUTOGRAD]) as recorded:
        recorder = recorded.recorder
        gate = Gate(watch=lambda one: recorder.emit(decided_record(one)))
        with listening(recorder, gate):
            x = torch.randn(8, 32, requires_grad=True)
            torch.compile(model, backend=backend)(x).square().sum().backward()
    patched.undo()
    return recorded, products


def test_every_node_of_the_graph_was_lowered(training: tuple[Recorded, Products]) -> None:
    recorded, products = training
    assert len(products.graphs) == 2
    for graph in products.graphs:
        id = f"{graph.name}/lowered"
        nodes = [node.name for node in recorded.graphs[id].nodes if node.op != "output"]
        assert [lowered.node for lowered in recorded.all(Lowered) if lowered.graph == id] == nodes
        computing = [n for n in graph.nodes if isinstance(n, (Map, Reduce, Scan, Store, Call))]
        scheduler_nodes = [node for node in recorded.all(SchedulerNode) if node.graph == id]
        assert [one.name for one in scheduler_nodes] == [f"op{i}" for i in range(len(computing))]
        kinds = {Call: "extern", Map: "pointwise", Reduce: "reduction"}
        assert [one.kind for one in scheduler_nodes] == [kinds[type(node)] for node in computing]
        fallbacks = {
            lowered.node
            for lowered in recorded.all(Lowered)
            if lowered.graph == id and lowered.fallback
        }
        reasons = {o for n in computing if isinstance(n, Call) and n.reason for o in n.origins}
        assert fallbacks == reasons


def test_loops_of_one_node_have_names_of_their_own(
    training: tuple[Recorded, Products],
) -> None:
    """A variance is three loops: `mean`, `squares`, `var_mean`."""
    recording = training[0]
    view = View(Derived(recording, Provenance(recording.records)))
    nodes = recording.all(SchedulerNode)
    split = [node for node in nodes if (node.graph, node.origins) in view.derived.split_origins]
    assert {"mean", "squares"} <= {one.label for one in split}
    for one in split:
        assert computes(view, one) == one.label
        alike = [two for two in split if (two.graph, two.origins) == (one.graph, one.origins)]
        assert len({two.label for two in alike}) == len(alike)


def test_loops_read_as_loop_nests(training: tuple[Recorded, Products]) -> None:
    recorded, _ = training
    nodes = [node for node in recorded.all(SchedulerNode) if node.kind != "extern"]
    assert nodes
    for node in nodes:
        nest = textbook_nest(node.nest)
        assert nest is not None, node.nest
        assert nest.body[-1].startswith(node.writes[0])


def test_pairs_and_groups_are_those_of_fusion(training: tuple[Recorded, Products]) -> None:
    recorded, products = training
    pairs = [pair for fusion in products.fusions for pair in fusion.pairs]
    assert list(dict.fromkeys(p.id for p in pairs_in(recorded))) == [p.id for p in pairs]
    verdicts = {pair.id: pair.fused for pair in pairs_in(recorded)}
    assert verdicts == {pair.id: pair.fused for pair in pairs}
    for fusion, groups in zip(products.fusions, recorded.all(FusionGroups), strict=True):
        assert len(groups.groups) == len(fusion.program.steps)
        calls = [group.kind == "extern" for group in groups.groups]
        assert calls == [isinstance(step, Call) for step in fusion.program.steps]
    fused = summarise(recorded).fusion.fused
    assert fused == sum(pair.fused for pair in pairs)


def test_decisions_are_recorded_with_what_was_weighed(
    training: tuple[Recorded, Products],
) -> None:
    recorded, _ = training
    decided = {one.id: one for one in recorded.all(Decided)}
    for pair in pairs_in(recorded):
        assert "saved_bytes" in decided[pair.id].numbers
        assert pair.score == (decided[pair.id].numbers["saved_bytes"],)
    (partition,) = recorded.all(Partition)
    saved = {value.node for value in partition.values if value.choice == "saved"}
    kept = {one.id.rpartition("/")[2] for one in decided.values() if one.choice == "save"}
    assert saved == kept


def test_memory_and_kernels_are_those_of_the_plan(training: tuple[Recorded, Products]) -> None:
    recorded, products = training
    rows = zip(products.plans, products.units, recorded.all(MemoryPlan), strict=True)
    for plan, unit, memory in rows:
        steps = [
            step
            for one in plan.steps
            for step in ([one.run] if isinstance(one.run, Call) else one.run.nests)
        ]
        kernels = [kernel for kernel in recorded.all(Kernel) if kernel.graph == memory.graph]
        assert len(kernels) == len(steps) == len(memory.steps)
        assert memory.peak_bytes == plan.peak_bytes
        assert set(plan.placements) <= {buffer.name for buffer in memory.buffers}
        for kernel, step in zip(kernels, steps, strict=True):
            if isinstance(step, Nest):
                name, function = unit.kernels[step.name]
                assert recorded.text(kernel.text) == function.named(name)
                assert kernel.locations or kernel.no_line
            else:
                assert (kernel.language, kernel.name) == ("aten", step.target)
    units = [
        recorded.text(wrapper.text)
        for wrapper in recorded.all(Wrapper)
        if wrapper.language == "cpp"
    ]
    assert all(unit.code in text for unit, text in zip(products.units, units, strict=True))


def test_the_cache_is_asked_and_misses(training: tuple[Recorded, Products]) -> None:
    recorded, _ = training
    asked = [(lookup.cache, lookup.verdict) for lookup in recorded.all(CacheLookup)]
    assert asked.count(("tcw graph", "miss")) == 2
    assert asked.count(("kernel build", "miss")) == 2


def test_every_section_can_be_shown(training: tuple[Recorded, Products]) -> None:
    recorded, _ = training
    for name in SECTIONS:
        assert to_text(explain(recorded, 100, 40, (name,)), 100)


def test_fusion_is_recorded_as_it_goes_on(training: tuple[Recorded, Products]) -> None:
    """At a decision that waits, the trace has all earlier decisions."""
    recorded, products = training
    graph = f"{products.graphs[0].name}/lowered"
    kinds = (SchedulerNode, Decided, FusionRound, FusionGroups)
    mine = [
        one
        for one in recorded.records
        if isinstance(one, kinds)
        and (one.graph == graph or (isinstance(one, Decided) and f"{one.graph}/lowered" == graph))
    ]
    decided = [one for one in mine if isinstance(one, Decided) and one.kind == "fuse"]
    nodes = [place for place, one in enumerate(mine) if isinstance(one, SchedulerNode)]
    assert nodes[-1] < mine.index(decided[0])
    assert isinstance([one for one in mine if not isinstance(one, Decided)][-1], FusionGroups)
    round_ = 1
    for one in mine:
        if isinstance(one, Decided) and one.pair is not None:
            assert one.pair.round == round_
        elif isinstance(one, FusionRound):
            assert one.round == round_
            round_ += 1
    pairs = [one for one in decided if one.pair is not None]
    assert pairs == decided
    rounds = [one for one in mine if isinstance(one, FusionRound)]
    assert sum(len(one.fused) for one in rounds) == sum(pair.choice == "fuse" for pair in pairs)
    assert round_ == len(products.fusions[0].rounds) + 1


def test_random_numbers_are_drawn_by_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No library call, no generated code."""
    monkeypatch.setenv("TCW_STRICT", "1")

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x * 2, 0.2, training=True) + 1

    with record([*CAPTURE, *AUTOGRAD]) as recorded, listening(recorded.recorder, Gate({})):
        torch.compile(function, backend=backend)(torch.randn(100, 100))
    kernels = [(kernel.name, kernel.language, kernel.generated) for kernel in recorded.all(Kernel)]
    assert kernels[0] == ("tcw.bernoulli.default", "rng", False)
    assert [(language, generated) for _, language, generated in kernels[1:]] == [("cpp", True)]
