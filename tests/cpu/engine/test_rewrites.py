"""The rewrites of the ATen graph: their order in the note, their records, and declining one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tcw.compiler.engine.compile as stages
from tcw.compiler.autograd import HOOKS as AUTOGRAD
from tcw.compiler.capture import HOOKS as CAPTURE
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.protocol.stages import STAGES
from tcw.compiler.rewrites import order
from tcw.compiler.trace.records import Graph, PassChange, StageStart
from tests.cpu.recorded import Recorded, record

NOTE = Path(__file__).parents[3] / "docs" / "notes" / "engine.md"
SVD = "tcw/0/0/inference/pass/unread_vectors"


def test_the_note_has_them_in_order() -> None:
    section = NOTE.read_text(encoding="utf-8").partition("## Rewrites\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    named = [re.findall(r"`(\w+)`", row) for row in rows[1:]]
    declared = [order.CAPTURED, order.JOINT, order.LOWERED]
    assert named == [[rewrite.name for rewrite in rewrites] for rewrites in declared]


def values(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.svdvals(x) + 1


def recorded(function: Any, *inputs: torch.Tensor) -> Recorded:
    with record([*CAPTURE, *AUTOGRAD]) as found, listening(found.recorder, Gate()):
        torch.compile(function, backend=backend)(*inputs)
    return found


def test_each_change_is_recorded_with_the_graph_before_and_after() -> None:
    found = recorded(lambda a, v: (values(a), a @ v), torch.eye(4), torch.ones(4))
    ours = [change for change in found.all(PassChange) if change.parent == "lowered rewrites"]
    changes = {one.name: one for one in ours}
    assert list(changes) == ["unread_vectors", "vector_products"]
    vectors = changes["unread_vectors"]
    assert vectors.graph == "0/0/inference"
    before, after = (found.text(text) for text in (vectors.before, vectors.after))
    assert "_linalg_svd.default(arg0_1, False, False" in after
    assert "_linalg_svd.default(arg0_1, False, False" not in before
    assert "mv" in found.text(changes["vector_products"].before)
    (lowered,) = [graph for graph in found.all(Graph) if graph.kind == "lowered"]
    made = {node.made_by for node in lowered.nodes if node.target == "aten.sum.dim_IntList"}
    assert made == {"vector_products"}


def test_they_are_a_stage() -> None:
    stages = [start.stage for start in recorded(values, torch.eye(4)).all(StageStart)]
    assert stages.index("passes") == stages.index("lowering") - 1
    assert STAGES.index("passes") == STAGES.index("lowering") - 1


@pytest.mark.parametrize("choice", [order.APPLY, order.SKIP])
def test_one_can_be_declined(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, ran = Gate({SVD: choice}), []
    rewrites = list(order.LOWERED)
    index = [rewrite.name for rewrite in rewrites].index("unread_vectors")
    kept = rewrites[index]
    rewrites[index] = replace(kept, change=lambda subject: ran.append(1) or kept.change(subject))
    monkeypatch.setattr(stages, "LOWERED", tuple(rewrites))
    x = torch.eye(4) * 3
    with listening(None, gate):
        result = torch.compile(values, backend=backend)(x)
    torch.testing.assert_close(result, values(x))
    assert bool(ran) == (choice == order.APPLY)
    assert not list(gate.unknown())
    assert [one.choice for one in gate.decided if one.decision.kind == "pass"] == [choice]
