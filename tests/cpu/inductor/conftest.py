"""Compiles that several test files use, made once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch

from tests.cpu.inductor.models import Softmax, Transformer, Zoo, zoo_inputs
from tests.cpu.inductor.recorded import Recorded, record, recording


@dataclass
class Watched:
    """A recording, and what a second, independent patch of the scheduler observed."""

    recorded: Recorded = field(default_factory=Recorded)
    pairs: list[tuple[str, str, bool]] = field(default_factory=list)
    """(first, second, verdict) of each call of can_fuse, in the order in which calls begin."""
    fused: list[tuple[str, str, str]] = field(default_factory=list)
    final: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    """(name, members) of `scheduler.nodes` when code generation starts, by scheduler."""
    output: torch.Tensor | None = None
    expected: torch.Tensor | None = None


@pytest.fixture(scope="session")
def transformer() -> Watched:
    """Four layers, for inference."""
    return watch(grad=False)


@pytest.fixture(scope="session")
def trained() -> Watched:
    """One layer, forward and backward."""
    return watch(grad=True, layers=1)


def watch(*, grad: bool, layers: int = 4) -> Watched:
    from torch._inductor.scheduler import Scheduler

    torch.manual_seed(0)
    model = Transformer(layers)
    x = torch.randn(2, 8, 32)
    watched = Watched()
    with recording() as recorded, pytest.MonkeyPatch.context() as patch:
        can_fuse, fuse, codegen = Scheduler.can_fuse, Scheduler.fuse_two_nodes, Scheduler.codegen

        def seen_can_fuse(self, node1, node2, *args, **kwargs):
            place = len(watched.pairs)
            watched.pairs.append((node1.get_name(), node2.get_name(), False))
            answer = can_fuse(self, node1, node2, *args, **kwargs)
            watched.pairs[place] = (*watched.pairs[place][:2], bool(answer))
            return answer

        def seen_fuse(self, node1, node2, *args, **kwargs):
            answer = fuse(self, node1, node2, *args, **kwargs)
            watched.fused.append((node1.get_name(), node2.get_name(), answer.get_name()))
            return answer

        def seen_codegen(self, *args, **kwargs):
            watched.final.append(
                [
                    (node.get_name(), tuple(member.get_name() for member in node.get_nodes()))
                    for node in self.nodes
                ]
            )
            return codegen(self, *args, **kwargs)

        patch.setattr(Scheduler, "can_fuse", seen_can_fuse)
        patch.setattr(Scheduler, "fuse_two_nodes", seen_fuse)
        patch.setattr(Scheduler, "codegen", seen_codegen)
        with torch.set_grad_enabled(grad):
            watched.output = torch.compile(model)(x)
            if grad:
                watched.output.sum().backward()
            watched.expected = model(x)
    watched.recorded = recorded
    return watched


@pytest.fixture(scope="session")
def softmax() -> Recorded:
    return record(Softmax(), torch.randn(4, 8, 16))[0]


@pytest.fixture(scope="session")
def zoo() -> Recorded:
    return record(Zoo(), *zoo_inputs())[0]
