"""The eager call on a GPU: autograd's device thread runs under the probe, too."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tcw.compiler.measure.probes.clock import HostClock  # noqa: E402
from tcw.compiler.measure.probes.eager_probe import EagerProbe  # noqa: E402
from tcw.compiler.measure.work.ceilings import measured  # noqa: E402
from tests.cpu.models import Checkpointed, Mlp, line  # noqa: E402


def step(model: Any, x: Any, probe: EagerProbe | None = None) -> list[Any]:
    """Forward, a loss and a backward, from cleared gradients."""
    for parameter in model.parameters():
        parameter.grad = None
    probe = probe or EagerProbe(model, 1)
    with probe.during("forward"):
        outputs = model(x)
    with probe.during("forward", "loss"):
        loss = outputs.float().mean()
    with probe.during("backward"):
        loss.backward()
    return [outputs, *[parameter.grad for parameter in model.parameters()]]


def test_backward_operations_have_the_lines_of_the_forward() -> None:
    model = Mlp().cuda()
    probe = EagerProbe(model, 1)
    with probe.describing():
        step(model, torch.randn(4, 32, device="cuda"), probe)
    where = {
        (operation.phase, operation.operation): (operation.module, operation.location.line)
        for operation in probe.operations
        if operation.location is not None
    }
    assert where["backward", "aten.gelu_backward.default"] == ("", line("gelu"))
    assert where["backward", "aten.native_layer_norm_backward.default"] == ("norm", line("norm"))
    assert where["backward", "aten._softmax_backward_data.default"] == ("", line("softmax"))
    assert sum(operation.part == "gradients" for operation in probe.operations) == 6


def test_results_are_the_plain_call_s() -> None:
    torch.manual_seed(0)
    for make in (Mlp, Checkpointed):
        plain = make().cuda()
        probed = copy.deepcopy(plain)
        x = torch.randn(4, plain.state_dict()["up.weight"].shape[1] if make is Mlp else 8).cuda()
        probe = EagerProbe(probed, 1)
        expected = step(plain, x)
        with probe.describing():
            found = step(probed, x, probe)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        clock = HostClock()
        with probe.timing(clock):
            found = step(probed, x, probe)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        assert probe.differs == ""
        assert len(clock.readings()) == len(probe.operations)


def test_the_card_s_ceilings() -> None:
    found = measured("cuda")
    assert found is not None
    assert found.kind == "cuda"
    assert found.device == torch.cuda.get_device_name()
    largest = found.bandwidth[-1]
    assert largest.bytes >= 1 << 29
    assert max(one.per_second for one in found.bandwidth) >= largest.per_second > 1e10
    assert found.rates["float16"] > found.rates["float64"] > 0
