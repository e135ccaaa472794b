"""The channels-last pass by itself: the rewritten graphs are executed unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounterWithBackend
from torch._functorch.aot_autograd import make_boxed_func

from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.gpu.retarget import retarget
from tcw.compiler.rewrites.channels_last import channels_last, report_strides
from tcw.compiler.rewrites.subject import Subject


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3, bias=False), nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.relu(self.norm(self.first(x)))
        z = F.max_pool2d(self.second(y) + y, 2)
        return z, z.view(z.shape[0], -1).sum(1)


def compiled(model: Callable[..., Any], gate: Gate | None = None) -> tuple[Any, list[int]]:
    converted = []

    def compiler(kind: str) -> Callable[..., Any]:
        def compile(module: Any, inputs: Any) -> Any:
            output = next(n for n in module.graph.nodes if n.op == "output")
            promised = 0 if kind == "backward" else len(output.args[0])
            options: Any = {"kind": kind, "promised": promised, "gate": gate or Gate()}
            converted.append(channels_last(Subject(module, inputs, graph=f"0/0/{kind}", **options)))
            if kind == "forward":
                report_strides(module)
            return make_boxed_func(module.forward)

        return compile

    backend = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
    )
    return torch.compile(model, backend=backend, fullgraph=True), converted


def watched(model: Callable[..., Any]) -> tuple[Any, list[tuple[tuple[int, ...], list[bool]]]]:
    """The model compiled for training, and for each convolution of its backward the weight's sizes
    and whether the images are contiguous."""
    orders = []

    def backward(module: Any, inputs: Any) -> Any:
        channels_last(Subject(module, inputs, graph="0/0/backward", kind="backward", promised=0))
        for node in module.graph.find_nodes(
            op="call_function", target=torch.ops.aten.convolution_backward.default
        ):
            images = [image.meta["val"].is_contiguous() for image in node.args[:2]]
            orders.append((tuple(node.args[2].meta["val"].shape), images))
        return make_boxed_func(module.forward)

    def forward(module: Any, inputs: Any) -> Any:
        channels_last(Subject(module, inputs, graph="0/0/forward", kind="forward", promised=1))
        report_strides(module)
        return make_boxed_func(module.forward)

    backend = aot_autograd(fw_compiler=forward, bw_compiler=backward)
    return torch.compile(model, backend=backend), orders


def test_inference_is_converted_once_and_outputs_keep_their_strides() -> None:
    model, x = Images().eval(), torch.randn(2, 4, 8, 8)
    with torch.no_grad():
        wanted = model(x)
        function, converted = compiled(model)
        found = function(x)
    assert converted == [1]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
        assert one.stride() == other.stride()


def test_images_of_which_atens_own_convolutions_take_charge_stay_as_they_are() -> None:
    """oneDNN has no float64 and no integers."""
    images, weight = torch.randint(-9, 9, (2, 4, 9, 9)), torch.randint(-9, 9, (4, 4, 3, 3))
    for dtype in (torch.float64, torch.int64):
        x, w = images.to(dtype), weight.to(dtype)
        function, converted = compiled(lambda x, w: F.conv2d(x, w, dilation=2) + 1)
        found = function(x, w)
        assert converted == [0]
        torch.testing.assert_close(found, F.conv2d(x, w, dilation=2) + 1)


@pytest.mark.parametrize(("batch", "channels", "kernel"), [(8, 8, 1), (1, 3, 3)])
def test_small_images_that_aten_convolves_itself_stay_as_they_are(
    batch: int, channels: int, kernel: int
) -> None:
    """oneDNN leaves these to ATen in one thread, whose loops take up to five times as long on
    channels-last images; with others, they are oneDNN's."""
    x, w = torch.randn(batch, channels, 28, 28), torch.randn(2, channels, kernel, kernel)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        function, converted = compiled(lambda x, w: F.conv2d(x, w).relu())
        torch.testing.assert_close(function(x, w), F.conv2d(x, w).relu())
    finally:
        torch.set_num_threads(threads)
    assert converted == [0]


@pytest.mark.parametrize(
    ("kernel", "size", "order", "follows"),
    [
        (3, 4, torch.contiguous_format, False),
        (3, 32, torch.contiguous_format, True),
        (1, 4, torch.contiguous_format, True),
        (3, 4, torch.channels_last, True),
    ],
)
def test_images_much_smaller_than_a_weight_stay_as_they_are(
    kernel: int, size: int, order: torch.memory_format, follows: bool
) -> None:
    """ATen would copy the weight into the images' order in each call, and its gradient back: not
    one of a single pixel, or one that has that order."""
    weight = torch.randn(64, 64, kernel, kernel).to(memory_format=order).requires_grad_()
    x = torch.randn(2, 64, size, size)

    def gradient(function: Callable[..., Any]) -> Any:
        return torch.autograd.grad(function(x, weight).square().sum(), weight)[0]

    plain = lambda x, w: F.conv2d(x, w, padding="same").relu()  # noqa: E731
    function, converted = compiled(plain)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)  # with one, ATen itself convolves these points
        torch.testing.assert_close(gradient(function), gradient(plain), rtol=1e-4, atol=1e-2)
    finally:
        torch.set_num_threads(threads)
    assert [images > 0 for images in converted] == [follows, follows]


def test_a_view_that_becomes_a_copy_has_memory_of_its_own() -> None:
    """Queries and keys of channels-last images, saved for the backward: views of copies, not of the
    images."""
    filters, mixing = torch.randn(32, 1, 5, 5) / 5, torch.randn(48, 32, 1, 1) / 6

    def scores(x: torch.Tensor) -> torch.Tensor:
        images = F.conv2d(F.conv2d(x, filters, stride=2, padding=2, groups=32), mixing)
        q, k = images.reshape(2, 2, 24, 4).permute(0, 1, 3, 2).chunk(2, dim=3)
        return q @ k.transpose(-2, -1)

    x = torch.randn(2, 32, 4, 4, requires_grad=True)
    (found,) = torch.autograd.grad(torch.compile(scores, backend=backend)(x).square().sum(), x)
    (wanted,) = torch.autograd.grad(scores(x).square().sum(), x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("groups", [1, 4])
def test_the_gradient_of_a_strided_and_dilated_convolution_gets_contiguous_images(
    groups: int,
) -> None:
    torch.manual_seed(0)
    first = nn.Conv2d(4, 4, 3, padding=1)
    second = nn.Conv2d(4, 4, 3, stride=2, dilation=2, groups=groups)
    x = torch.randn(2, 4, 32, 32)

    def gradients(function: Callable[..., Any]) -> tuple[torch.Tensor, ...]:
        parameters = [*first.parameters(), *second.parameters()]
        return torch.autograd.grad(function(x).square().sum(), parameters)

    def model(x: torch.Tensor) -> torch.Tensor:
        return second(first(x).relu())

    function, orders = watched(model)
    for one, other in zip(gradients(function), gradients(model), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
    assert [images for _, images in orders] == [[True, True], [False, False]]
    function, converted = compiled(second)
    function(x)
    assert converted == [0]
    function, converted = compiled(second)
    with torch.no_grad():
        torch.testing.assert_close(function(x), second(x))
    assert converted == [1]


def test_training_gives_the_same_gradients() -> None:
    torch.manual_seed(0)
    model = Images().train()
    x = torch.randn(2, 4, 8, 8, requires_grad=True)

    def gradients(function: Callable[..., Any]) -> list[torch.Tensor]:
        image, rows = function(x)
        return list(
            torch.autograd.grad(image.sum() + rows.square().sum(), [x, *model.parameters()])
        )

    wanted = gradients(model)
    function, converted = compiled(model)
    for one, other in zip(gradients(function), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
    assert converted[0] == 1


@pytest.mark.parametrize(("channels", "by_channel"), [(3, True), (16, False)])
def test_onednn_gets_no_images_for_which_it_overruns_its_workspace(
    channels: int, by_channel: bool
) -> None:
    """The weight's gradient of a strided 1 x 1 convolution with few input channels: channels-last
    images end the process."""
    torch.manual_seed(0)
    narrow, wide = nn.Conv2d(channels, 8, 1, stride=2), nn.Conv2d(channels, 8, 3, 2, padding=1)
    x = torch.randn(2, channels, 32, 32)

    def gradient(function: Callable[..., Any]) -> torch.Tensor:
        (found,) = torch.autograd.grad(function(x).square().sum(), narrow.weight)
        return found

    def model(x: torch.Tensor) -> torch.Tensor:
        return F.relu(narrow(x) + wide(x))

    function, orders = watched(model)
    torch.testing.assert_close(gradient(function), gradient(model), rtol=1e-3, atol=1e-3)
    points = [images for sizes, images in orders if sizes[2:] == (1, 1)]
    assert points == [[by_channel, by_channel]]


def test_an_override_leaves_the_layout_as_captured() -> None:
    model, x = Images().eval(), torch.randn(2, 4, 8, 8)
    gate = Gate({"tcw/0/0/inference/layout/convolution": "as-captured"})
    with torch.no_grad():
        function, converted = compiled(model, gate)
        torch.testing.assert_close(function(x)[0], model(x)[0])
    assert converted == [0]
    assert not list(gate.unknown())


def test_images_that_are_channels_last_already_need_nothing() -> None:
    model = nn.Conv2d(4, 8, 3).eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 4, 8, 8).to(memory_format=torch.channels_last)
    with torch.no_grad():
        function, converted = compiled(model)
        torch.testing.assert_close(function(x), model(x))
    assert converted == [0]


@pytest.mark.parametrize("size", [8, 10])
def test_dynamic_shapes(size: int) -> None:
    model = Images().eval()
    function, _ = compiled(model)
    x = torch.randn(2, 4, size, size)
    torch._dynamo.mark_dynamic(x, 0)
    with torch.no_grad():
        torch.testing.assert_close(function(x)[0], model(x)[0])
        torch.testing.assert_close(
            function(x.repeat(2, 1, 1, 1))[0], model(x.repeat(2, 1, 1, 1))[0]
        )


def test_gradients_of_images_of_unknown_sizes() -> None:
    """Their backward reads what the forward saved in the order in which it was saved, and neither
    depends on the sizes of the first call."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 4, 1))
    counter = CompileCounterWithBackend(backend)
    function = torch.compile(model, backend=counter, dynamic=True)
    compiles = []
    for sizes in ((2, 3, 9, 13), (4, 3, 16, 10), (5, 3, 8, 7)):
        x = torch.randn(sizes)
        found, expected = (
            torch.autograd.grad(one(x).square().sum(), list(model.parameters()))
            for one in (function, model)
        )
        torch.testing.assert_close(found, expected, atol=2e-3, rtol=1e-4)
        compiles.append(counter.frame_count)
    assert len(set(compiles)) == 1


class Net(nn.Module):
    """A convolution, and something that depends on its memory's order."""

    def __init__(self, after: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.after = after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(torch.relu(self.convolution(x))) + 1


@torch.library.custom_op("tcw_test::flat_order", mutates_args=())
def flat_order(x: torch.Tensor) -> torch.Tensor:
    return torch.as_strided(x, (x.numel(),), (1,)).clone()


flat_order.register_fake(lambda x: x.new_empty(x.numel()))

AFTER: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dropout": lambda x: nn.functional.dropout(x, 0.5),
    "random": torch.rand_like,
    "as_strided": lambda x: x.as_strided((5,), (2,), 3),
    "view as complex": lambda x: torch.view_as_real(torch.view_as_complex(x.view(2, 4, 18, 2))),
    "another's operation": lambda x: flat_order(x.detach() * 2),
}


@pytest.mark.parametrize("name", AFTER)
def test_what_depends_on_the_order_of_memory_gets_the_captured_one(name: str) -> None:
    torch.manual_seed(0)
    model, x = Net(AFTER[name]), torch.randn(2, 3, 8, 8)
    results = []
    for function in (torch.compile(model, backend=backend), model):
        torch.manual_seed(1)
        model.zero_grad()
        result = function(x)
        if result.requires_grad:
            result.sum().backward()
        results.append((result, model.convolution.weight.grad))
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("build", ["CPU", "CUDA"])
def test_images_of_a_gpu_that_is_not_there(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN returns channels-last, which a torch without a GPU does not know, even if it has cuDNN;
    a backward is compiled for the strides that its forward chose."""
    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: build == "CUDA")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    converted: list[list[torch.fx.Node]] = []

    def compile(module: Any, inputs: Any) -> Any:
        copied, moved = retarget(module, inputs)
        channels_last(Subject(copied, moved, graph="0/0/forward", kind="forward", promised=0))
        report_strides(copied)
        converted.append(
            [n for n in copied.graph.nodes if n.target is torch.ops.aten.clone.default]
        )
        for node in copied.graph.nodes:
            if node.target is torch.ops.aten.convolution_backward.default:
                assert node.args[0].meta["val"].is_contiguous(memory_format=torch.channels_last)
        return make_boxed_func(module.forward)

    first, second = (nn.Conv2d(8, 8, 3, padding=1, bias=False).bfloat16() for _ in range(2))
    x = torch.randn(2, 8, 16, 16, dtype=torch.bfloat16)
    run = torch.compile(
        lambda x: second(first(x).relu()).relu(),
        backend=aot_autograd(fw_compiler=compile, bw_compiler=compile),
    )
    run(x).sum().backward()
    forward, backward = converted
    assert len(forward) == 3, "the image and two weights"
    assert len(backward) <= 4, "the image and two weights; the gradient of ones"
