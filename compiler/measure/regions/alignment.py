"""Eager's operations on one line, aligned with the nodes that Dynamo captured for it.

A line often has several calls (`x + down(gelu(up(x)))`). If both sides run the same calls in the
same order, each call is told apart; if that is uncertain, the line is treated as one.
"""

from __future__ import annotations

from collections.abc import Sequence


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


SAME = {
    "linear": "addmm mm bmm add linear baddbmm",
    "matmul": "mm bmm mv dot matmul addmm",
    "conv1d": "convolution",
    "conv2d": "convolution",
    "conv3d": "convolution",
    "conv_transpose2d": "convolution",
    "scaled_dot_product_attention": """scaled_dot_product_flash_attention_for_cpu
        scaled_dot_product_flash_attention scaled_dot_product_efficient_attention
        scaled_dot_product_cudnn_attention scaled_dot_product_fused_attention_overrideable
        scaled_dot_product_attention_math bmm softmax safe_softmax mul add where scalar_tensor
        ones tril full logical_not masked_fill clone""",
    "cross_entropy": "log_softmax nll_loss_forward nll_loss2d_forward",
    "dropout": "dropout bernoulli div mul empty_like",
    "batch_norm": """batch_norm batch_norm_legit batch_norm_legit_no_training
        batch_norm_with_update batch_norm_legit_functional cudnn_batch_norm miopen_batch_norm""",
    "layer_norm": "layer_norm",
    "group_norm": "group_norm",
    "rms_norm": "pow mean add rsqrt mul to_copy fused_rms_norm rms_norm",
    "max_pool2d": "max_pool2d_with_indices",
    "max_pool1d": "max_pool2d_with_indices max_pool1d",
    "adaptive_avg_pool2d": "mean adaptive_avg_pool2d",
    "mse_loss": "mse_loss",
    "float": "to_copy",
    "half": "to_copy",
    "bfloat16": "to_copy",
    "to": "to_copy",
    "type_as": "to_copy",
    "truediv": "div",
    "floordiv": "floor_divide div",
    "matmul_": "mm bmm",
    "square": "pow",
    "std": "std var sqrt",
    "einsum": "bmm mm mul sum clone",
    "stack": "stack cat",
    "normalize": "linalg_vector_norm clamp_min div norm",
    "one_hot": "scatter zeros fill",
    "concat": "cat",
}
"""Word of a captured target -> words of the ATen operations that it may run as."""

MAY_COPY = words("reshape contiguous flatten to float half bfloat16 type_as clone")
"""Captured calls that may run nothing in eager that touches memory."""

COPIES = frozenset(("clone", "to_copy", "copy"))


def plain_word(text: str) -> str:
    """`_softmax`, `native_layer_norm`, `add_` -> `softmax`, `layer_norm`, `add`."""
    text = text.strip("_")
    for prefix in ("native_", "unsafe_"):
        text = text.removeprefix(prefix)
    return {"iadd": "add", "imul": "mul", "isub": "sub", "itruediv": "div"}.get(text, text)


KINDS = {
    "addmm": "mm",
    "linear": "mm",
    "linear_pointwise": "mm",
    "mkl_linear": "mm",
    "baddbmm": "bmm",
    "convolution_pointwise": "convolution",
    "convolution_overrideable": "convolution",
    "mkldnn_convolution": "convolution",
    "cudnn_convolution": "convolution",
    "to_copy": "copy",
    "clone": "copy",
    "convert_element_type": "copy",
}
"""Operations that do the same work under several names."""


def kind(name: str) -> str:
    """The common name of operations that do the same work, given a `plain_word`."""
    return KINDS.get(name, name)


def may_run(captured: str, operation: str) -> bool:
    """Whether a captured call may run this ATen operation; both as `plain_word` returns them."""
    if captured == operation:
        return True
    if captured in MAY_COPY and operation in COPIES:
        return True
    return operation in SAME.get(captured, "").split()


def aligned(captured: Sequence[str], operations: Sequence[str]) -> list[int] | None:
    """For each operation, the index of the captured call that runs it; None unless both are
    certainly the same calls in the same order. Both without views, as `plain_word` returns them.

    >>> aligned(["gelu", "linear", "add"], ["gelu", "addmm", "add"])
    [0, 1, 2]
    """
    found: list[int] = []
    place = -1
    for number, operation in enumerate(operations):
        here = place
        if not (place >= 0 and _goes_on(captured, place, operation, operations[number:])):
            here = place + 1
            while (
                here < len(captured)
                and captured[here] in MAY_COPY
                and not may_run(captured[here], operation)
            ):
                here += 1
            if here >= len(captured) or not may_run(captured[here], operation):
                return None
        found.append(here)
        place = here
    rest = captured[place + 1 :]
    return found if all(name in MAY_COPY for name in rest) else None


def _goes_on(captured: Sequence[str], place: int, operation: str, left: Sequence[str]) -> bool:
    """Whether the call at `place`, which has already run an operation, runs this one too: only if
    it may run several, and the calls after it do not need the remaining operations."""
    several = SAME.get(captured[place], "").split()
    if len(several) < 2 or operation not in several:
        return False
    after = captured[place + 1] if place + 1 < len(captured) else ""
    waiting = sum(name not in MAY_COPY for name in captured[place + 1 :])
    return not (after and may_run(after, operation)) or len(left) > waiting
