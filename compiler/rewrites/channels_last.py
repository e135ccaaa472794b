"""The channels-last pass: convolutions use NHWC memory, and the operations between them follow.

oneDNN's convolutions are faster on channels-last memory, as are cuDNN's of 16-bit floats, which run
on tensor cores without transposing then, and pointwise loops work in any order. So each image that
such a convolution reads is converted to channels-last if necessary. Strides are then recomputed
downstream, which leaves one conversion at the start, and one at each output whose strides the user
was promised. Convolutions whose weight is much larger than their images stay contiguous on the CPU,
since ATen copies the weight into the images' order. The idea is Inductor's (`decide_layout_opt` in
torch/_inductor/graph.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tcw.compiler.control.hooks import Hook, Missing, resolve
from tcw.compiler.graphs.aten_facts import outputs_of
from tcw.compiler.rewrites.subject import Subject, add_call, choose, value_of
from tcw.compiler.trace.records.graph import GraphKind

aten = torch.ops.aten

_SELECT = "torch._C:_select_conv_backend"

HOOK = Hook(
    name="convolution libraries",
    offers="channels-last memory for those convolutions alone that oneDNN computes",
    needs=(_SELECT,),
    test="engine/test_channels_last.py",
)

_ATENS_OWN = "Slow"
"""How the names of ATen's own implementations on the CPU begin (`ConvBackend`)."""
_LARGE = 1 << 10
"""The size that an unknown one counts as."""
_ONEDNNS = (torch.float16, torch.bfloat16, torch.float32)


def by_onednn(image: torch.Tensor, weight: torch.Tensor, window: Sequence[Any]) -> bool:
    """Whether oneDNN computes this convolution of a CPU (`use_mkldnn` in
    ATen/native/Convolution.cpp): by the dtype and, in float32, by sizes and the number of threads.

    `window`: stride, padding, dilation, whether it is transposed, the padding of its output, and
    groups. Unknown sizes count as large. If they are those of a weight, or if torch does not say
    which library it selects, the dtype alone decides.
    """
    try:
        select: Any = resolve(_SELECT)
    except Missing:
        return image.dtype in _ONEDNNS
    if not all(isinstance(size, int) for size in (image.shape[1], *weight.shape)):
        return image.dtype in _ONEDNNS
    with unset_fake_temporarily():
        empty = torch.empty((), dtype=image.dtype)
        sizes = [size if isinstance(size, int) else _LARGE for size in image.shape]
        chosen = select(empty.expand(sizes), empty.expand(weight.shape), None, *window)
    return not chosen.name.startswith(_ATENS_OWN)


KIND = "layout"
CHANNELS_LAST = "channels-last"
AS_CAPTURED = "as-captured"
MEANS = "the memory order of images; the values are the same"

_IMAGES = {aten.convolution.default: (0,), aten.convolution_backward.default: (0, 1)}
"""Operation -> which of its arguments are images."""

_WEIGHTS = {aten.convolution.default: (1,), aten.convolution_backward.default: (2,)}
"""Arguments that cuDNN wants in the same order, and would copy in each call. oneDNN has its own
order."""

_OPERANDS = {aten.convolution.default: (0, 1), aten.convolution_backward.default: (1, 2)}
"""Where the image and the weight are."""

_NARROW = (torch.float16, torch.bfloat16)

_HEAVY = 4
"""Elements of a weight to each of its images from which on copying it costs more than it saves."""

_BLOCK = 16
"""Channels in the widest block of oneDNN's kernels."""

_LIKE_FIRST = frozenset({aten._native_batch_norm_legit_no_training.default})
"""Their first result is laid out like their first argument; the others are unchanged. This avoids
running torch's decomposition on fake tensors, which would dominate this pass on a ResNet."""
_OF_MEMORY = frozenset(
    {
        aten.as_strided.default,
        aten.as_strided_copy.default,
        aten.as_strided_scatter.default,
        aten.view.dtype,
        aten.view_as_complex.default,
    }
)
"""Operations that depend on memory layout, not only on a tensor's elements."""


def channels_last(subject: Subject) -> int:
    """Rewrite the graph in place and return the number of images converted.

    Promised outputs retain the strides that eager gives them. Even without convolutions, strides
    are recomputed if inputs do not have the strides with which it was traced, as in the backward of
    a converted forward.
    """
    module, kind = subject.module, subject.kind
    mode = _fake_mode(module)
    convolutions = [node for node in module.graph.nodes if node.target in _IMAGES]
    nodes = [
        n
        for n in convolutions
        if _images(n) and not _contiguous(n) and (_alone(n, kind) or not _scattered(n))
    ]
    restrided = _restride_inputs(module, subject.inputs)
    wanted = bool(nodes) and mode is not None and _wanted(subject, nodes)
    if mode is None or not (wanted or restrided):
        return 0
    output = module.graph.output_node()
    strides = [_strides(node) for node in output.args[0]]
    captured = {node: _strides(node) for node in module.graph.nodes}
    captured.update(restrided)
    stale = set(restrided)
    made: dict[tuple[fx.Node, torch.memory_format], fx.Node] = {}
    shapes = getattr(mode, "shape_env", None)
    with mode, shapes.suppress_guards() if shapes is not None else nullcontext():
        for node in list(module.graph.nodes):
            if node.op != "call_function":
                continue
            if stale and _reads_memory(node.target):
                _give_as_captured(module, node, captured)
            if node.target in _IMAGES and _scattered(node) and not _alone(node, kind):
                if node.target is aten.convolution_backward.default:
                    stale |= _convert_images(module, node, made, torch.contiguous_format)
            elif node.target in _IMAGES and _contiguous(node):
                stale |= _convert_images(module, node, made, torch.contiguous_format)
            elif wanted and node.target in _IMAGES:
                stale |= _convert_images(module, node, made, torch.channels_last)
            if stale.intersection(node.all_input_nodes) and _refresh(node):
                stale.add(node)
        _restore(module, output, strides, subject.promised)
    module.recompile()
    return sum(order == torch.channels_last for _, order in made)


def _reads_memory(target: Any) -> bool:
    """Whether the result depends, or may depend, on strides: random numbers are drawn in memory
    order, and nothing is known about operations that are not torch's."""
    if not isinstance(target, torch._ops.OpOverload):
        return isinstance(target, torch._ops.HigherOrderOperator)
    known = target.namespace in ("aten", "prims")
    return not known or target in _OF_MEMORY or torch.Tag.nondeterministic_seeded in target.tags


def _give_as_captured(module: fx.GraphModule, user: fx.Node, captured: dict[fx.Node, Any]) -> None:
    """Copy an operation's inputs back into the strides with which they were captured."""
    for given in user.all_input_nodes:
        before = captured.get(given)
        is_tensor = isinstance(given.meta.get("val"), torch.Tensor)
        if is_tensor and before is not None and _strides(given) != before:
            user.replace_input_with(given, _copied(module, given, before, user))


def report_strides(module: fx.GraphModule) -> None:
    """Report the forward's output strides to AOTAutograd, which compiles the backward for them."""
    context = TracingContext.try_get()
    if context is None or context.output_strides is None or context.output_strides:
        return
    for node in outputs_of(module):
        context.output_strides.append(_strides(node))


def _wanted(subject: Subject, nodes: Sequence[fx.Node]) -> bool:
    chosen = choose(
        subject,
        kind=KIND,
        nodes=tuple(node.name for node in nodes),
        default=CHANNELS_LAST,
        choices=(CHANNELS_LAST, AS_CAPTURED),
        rule="convolutions",
        reason=f"{len(nodes)} convolutions are faster on channels-last memory",
        numbers={"convolutions": len(nodes)},
        means=MEANS,
    )
    return chosen == CHANNELS_LAST


def _images(node: fx.Node) -> list[fx.Node]:
    """The arguments of a convolution to be converted, four-dimensional tensors: images that
    oneDNN reads on the CPU, images and weights of 16-bit floats on a GPU."""
    found = []
    for position in (*_IMAGES[node.target], *_WEIGHTS[node.target]):
        argument = node.args[position]
        value = argument.meta.get("val") if isinstance(argument, fx.Node) else None
        if not isinstance(value, torch.Tensor) or value.dim() != 4:
            continue
        on_gpu = value.device.type == "cuda" and value.dtype in _NARROW
        on_cpu = value.device.type == "cpu" and position in _IMAGES[node.target]
        if on_gpu or (on_cpu and _by_onednn(node)):
            found.append(argument)
    return found


def _by_onednn(node: fx.Node) -> bool:
    """Whether oneDNN computes this convolution of a CPU. ATen's own, which get all others, are not
    faster on channels-last memory: small and grouped ones of float64 and integers take two to four
    times as long, the backward of float16 twice, a point of few channels in float32 five times."""
    image, weight = (node.args[place].meta["val"] for place in _OPERANDS[node.target])
    return by_onednn(image, weight, _window(node))


def _window(node: fx.Node) -> tuple[Any, ...]:
    """A convolution's stride, padding, dilation, whether it is transposed, the padding of its
    output, and groups; 1 for an unknown size."""
    start = _OPERANDS[node.target][1] + 2
    return fx.node.map_arg(node.args[start : start + 6], lambda size: 1)  # type: ignore[no-any-return]


def _scattered(node: fx.Node) -> bool:
    """Whether oneDNN's gradient of a CPU's images is slow on channels-last memory: a strided and
    dilated convolution's, for which oneDNN has no kernel but a product whose results it adds to
    their places, and there one by one. In float32 of two channels that takes 60 times as long."""
    if not _images(node) or node.args[0].meta["val"].device.type != "cpu":
        return False
    weight = node.args[_OPERANDS[node.target][1]].meta["val"]
    strides, _, dilations, *_ = _window(node)
    strided = any(stride != 1 for stride in strides)
    sizes = zip(dilations, weight.shape[2:], strict=False)
    return strided and any(dilation != 1 and size != 1 for dilation, size in sizes)


def _alone(node: fx.Node, kind: GraphKind) -> bool:
    """Whether no gradient needs this convolution's images."""
    return kind == "inference" and node.target is aten.convolution.default


def _contiguous(node: fx.Node) -> bool:
    """Whether a convolution is to get contiguous images."""
    return _overruns(node) or _heavy(node)


def _heavy(node: fx.Node) -> bool:
    """Whether a CPU's weight is so large that copying it decides. For channels-last images ATen
    copies one of several pixels into their order, and its gradient back, in each call (1-2 ns an
    element; `mkldnn_convolution` in ATen/native/mkldnn/Conv.cpp). oneDNN's own order for contiguous
    ones takes a tenth of that. Convolutions of 3 x 3 pixels and 512 channels on images of 2 x 2 are
    3-5 times as fast on contiguous memory."""
    image, weight = (node.args[place].meta["val"] for place in _OPERANDS[node.target])
    if not _images(node) or image.device.type != "cpu":
        return False
    if weight.is_contiguous(memory_format=torch.channels_last):
        return False
    forward = node.target is aten.convolution.default
    other = node.meta["val"] if forward else node.args[0].meta["val"]
    elements = [one.numel() for one in (image, other, weight)]
    known = all(isinstance(count, int) for count in elements)
    return known and elements[2] >= _HEAVY * (elements[0] + elements[1])


def _overruns(node: fx.Node) -> bool:
    """Whether oneDNN writes beyond its workspace if these images are channels-last: the gradient of
    a strided 1 x 1 weight with fewer input channels than a block has
    (https://github.com/uxlfoundation/oneDNN/issues/6035)."""
    if node.target is not aten.convolution_backward.default or not _images(node):
        return False
    if node.args[0].meta["val"].device.type != "cpu":
        return False
    weight, strides, groups, wanted = (node.args[position] for position in (2, 4, 9, 10))
    _, channels, *kernel = weight.meta["val"].shape
    strided = any(stride != 1 for stride in strides)
    point = all(size == 1 or not isinstance(size, int) for size in kernel)
    narrow = not isinstance(channels, int) or channels < _BLOCK
    return strided and point and narrow and groups == 1 and bool(wanted[1])


def _convert_images(
    module: fx.GraphModule,
    node: fx.Node,
    made: dict[tuple[fx.Node, torch.memory_format], fx.Node],
    order: torch.memory_format,
) -> set[fx.Node]:
    """Give a convolution its images in this memory order; returns the copies."""
    converted = set()
    for image in _images(node):
        value = image.meta["val"]
        if value.is_contiguous(memory_format=order):
            continue
        if (image, order) not in made:
            with module.graph.inserting_before(node):
                made[image, order] = add_call(image, aten.clone.default, image, memory_format=order)
        node.replace_input_with(image, made[image, order])
        converted.add(made[image, order])
    return converted


def _refresh(node: fx.Node) -> bool:
    """Recompute a node's result on fake tensors; returns whether its strides changed."""
    before = node.meta.get("val")
    args, kwargs = fx.node.map_aggregate((node.args, node.kwargs), value_of)
    try:
        after = (
            (torch.empty_like(args[0]), *before[1:])
            if node.target in _LIKE_FIRST
            else node.target(*args, **kwargs)
        )
        if node.target in _IMAGES and not _cudnn_answers():
            after = _as_cudnn_returns(after)
    except (RuntimeError, ValueError):
        if node.target is not aten.view.default:
            raise
        # A view of memory in another order is one of a copy, which has memory of its own.
        given: Any = node.args[0]
        order = torch.contiguous_format
        with node.graph.inserting_before(node):
            copied = add_call(given, aten.clone.default, given, memory_format=order)
        node.args = (copied, *node.args[1:])
        after = aten.view.default(copied.meta["val"], *args[1:], **kwargs)
    node.meta["val"] = after
    return bool(_all_strides(before) != _all_strides(after))


def _cudnn_answers() -> bool:
    """Whether torch asks cuDNN for the order of a convolution's result: not without a GPU, although
    a build for CUDA has cuDNN."""
    return bool(torch.backends.cudnn.is_available() and torch.cuda.is_available())


def _as_cudnn_returns(results: Any) -> Any:
    """What a convolution returns on a GPU, in the order of its images, where none is there to ask
    (`cudnn_conv_suggest_memory_format` in ATen/native/ConvUtils.h)."""
    if isinstance(results, torch.Tensor):
        if results.device.type != "cuda" or results.dim() != 4:
            return results
        about = {"dtype": results.dtype, "device": results.device}
        return torch.empty(results.shape, **about, memory_format=torch.channels_last)
    return tuple(map(_as_cudnn_returns, results)) if isinstance(results, tuple) else results


def _restore(
    module: fx.GraphModule, output: fx.Node, strides: Sequence[Any], promised: int
) -> None:
    """Copy each promised output with changed strides back into its original strides."""
    results = list(output.args[0])
    for position, (node, before) in enumerate(zip(results, strides, strict=True)):
        if position >= promised or before is None or _strides(node) == before:
            continue
        results[position] = _copied(module, node, before, output)
    output.args = (type(output.args[0])(results),)


def _copied(module: fx.GraphModule, node: fx.Node, strides: Sequence[Any], user: fx.Node) -> Any:
    """Insert a copy in the order of these strides before its user."""
    order = sorted(range(len(strides)), key=lambda d: (-strides[d], d))
    back = [order.index(d) for d in range(len(strides))]
    with module.graph.inserting_before(user):
        turned = add_call(node, aten.permute.default, node, order)
        copied = add_call(node, aten.clone.default, turned, memory_format=torch.contiguous_format)
        return add_call(node, aten.permute.default, copied, back)


def _restride_inputs(module: fx.GraphModule, example_inputs: Sequence[Any]) -> dict[fx.Node, Any]:
    """Placeholders whose inputs have strides unlike the traced ones -> the traced strides."""
    changed = {}
    holders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, given in zip(holders, example_inputs, strict=False):
        before = node.meta.get("val")
        if not isinstance(given, torch.Tensor) or not isinstance(before, torch.Tensor):
            continue
        if _strides(node) != _all_strides(given):
            changed[node] = _strides(node)
            node.meta["val"] = given
    return changed


def _strides(node: Any) -> Any:
    return _all_strides(node.meta.get("val")) if isinstance(node, fx.Node) else None


def _all_strides(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.stride()) if value.layout is torch.strided else None
    if isinstance(value, (tuple, list)):
        return tuple(_all_strides(item) for item in value)
    return None


def _fake_mode(module: fx.GraphModule) -> Any:
    for node in module.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode
    return None
