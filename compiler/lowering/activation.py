"""Activations and their backward formulas, as ATen's kernels compute them.

Source: aten/src/ATen/native/cpu/Activation.cpp, including the gradients at kinks.
"""

from __future__ import annotations

import math

from compiler.lowering.builder import Builder
from compiler.lowering.elements import (
    Element,
    Operand,
    elementwise,
    erf,
    exp,
    expm1,
    formula_map,
    larger,
    log1p,
    minimum,
    sigmoid,
    smaller,
    tanh,
    where,
)
from compiler.lowering.promotion import Number
from compiler.lowering.registry import lowers
from compiler.lowering.tensors import Meta, Tensor

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
SQRT_HALF = math.sqrt(0.5)
GELU_TANH = math.sqrt(2 / math.pi)
GELU_CUBE = 0.044715
GELU_DENSITY = 1 / math.sqrt(2 * math.pi)


@elementwise("relu")
def relu(x: Element) -> Element:
    return larger(0, x)


@elementwise("relu6")
def relu6(x: Element) -> Element:
    return smaller(6, larger(0, x))


@elementwise("threshold")
def threshold(x: Element, limit: Number, value: Number) -> Element:
    return where(x <= limit, value, x)


@elementwise("threshold_backward")
def threshold_backward(grad: Element, x: Element, limit: Number) -> Element:
    return where(x <= limit, 0, grad)


@elementwise("hardtanh")
def hardtanh(x: Element, low: Number = -1, high: Number = 1) -> Element:
    return smaller(high, larger(low, x))


@elementwise("hardtanh_backward")
def hardtanh_backward(grad: Element, x: Element, low: Number, high: Number) -> Element:
    return where((x <= low) | (x >= high), 0, grad)


@elementwise("hardsigmoid")
def hardsigmoid(x: Element) -> Element:
    return smaller(6, larger(0, x + 3)) / 6


@elementwise("hardsigmoid_backward")
def hardsigmoid_backward(grad: Element, x: Element) -> Element:
    return where((x > -3) & (x < 3), grad * (1 / 6), 0)


@elementwise("hardswish")
def hardswish(x: Element) -> Element:
    return x * smaller(6, larger(0, x + 3)) / 6


@elementwise("hardswish_backward")
def hardswish_backward(grad: Element, x: Element) -> Element:
    inner = where(x < 3, grad * (x / 3 + 0.5), grad)
    return where(x <= -3, 0, inner)


@elementwise("hardshrink")
def hardshrink(x: Element, limit: Number = 0.5) -> Element:
    return where((x >= -limit) & (x <= limit), 0, x)


@elementwise("softshrink")
def softshrink(x: Element, limit: Number = 0.5) -> Element:
    """0 between the limits; NaN propagates."""
    return where(x > limit, x - limit, where(x < -limit, x + limit, x * 0))


@elementwise("hardshrink_backward", "softshrink_backward")
def shrink_backward(grad: Element, x: Element, limit: Number) -> Element:
    return where((x >= -limit) & (x <= limit), 0, grad)


@elementwise("leaky_relu")
def leaky_relu(x: Element, slope: Number = 0.01) -> Element:
    return where(x > 0, x, x * slope)


@elementwise("leaky_relu_backward")
def leaky_relu_backward(grad: Element, x: Element, slope: Number, is_result: bool) -> Element:
    return where(x > 0, grad, grad * slope)


@elementwise("_prelu_kernel")
def prelu(x: Element, weight: Element) -> Element:
    return where(x > 0, x, weight * x)


@elementwise("elu")
def elu(x: Element, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Element:
    scaled = x if input_scale == 1 else x * input_scale
    return where(x <= 0, expm1(scaled) * (alpha * scale), x if scale == 1 else x * scale)


@elementwise("elu_backward")
def elu_backward(
    grad: Element, alpha: Number, scale: Number, input_scale: Number, is_result: bool, x: Element
) -> Element:
    slope = alpha * scale
    if is_result:
        below = grad * input_scale * (x + slope)
    else:
        below = grad * input_scale * slope * exp(x * input_scale)
    return where(x <= 0, below, grad * scale)


@elementwise("celu")
def celu(x: Element, alpha: Number = 1) -> Element:
    return elu(x, alpha, 1, 1 / alpha)


@elementwise("selu")
def selu(x: Element) -> Element:
    return elu(x, SELU_ALPHA, SELU_SCALE, 1)


@elementwise("silu")
def silu(x: Element) -> Element:
    return x / (1 + exp(-x))


@elementwise("silu_backward")
def silu_backward(grad: Element, x: Element) -> Element:
    s = sigmoid(x)
    return grad * s * (1 + x * (1 - s))


@elementwise("mish")
def mish(x: Element) -> Element:
    return x * _tanh_softplus(x, _bounded_exp(x))


@elementwise("mish_backward")
def mish_backward(grad: Element, x: Element) -> Element:
    e = _bounded_exp(x)
    t = _tanh_softplus(x, e)
    return grad * (t + x * (e / (1 + e)) * (1 - t * t))


def _bounded_exp(x: Element) -> Element:
    """exp(x), and exp(20) from there on, where tanh(softplus(x)) is 1 in float64 too."""
    return exp(minimum(x, 20.0))


def _tanh_softplus(x: Element, e: Element) -> Element:
    """tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2): one exponential, no cancellation."""
    n = e * (e + 2)
    return where(x > 20, 1, n / (n + 2))


@elementwise("gelu")
def gelu(x: Element, approximate: str = "none") -> Element:
    if approximate == "tanh":
        return 0.5 * x * (1 + tanh(GELU_TANH * (x + GELU_CUBE * x * x * x)))
    return x * 0.5 * (1 + erf(x * SQRT_HALF))


@elementwise("gelu_backward")
def gelu_backward(grad: Element, x: Element, approximate: str = "none") -> Element:
    if approximate == "tanh":
        square = x * x
        t = tanh(GELU_TANH * (x + GELU_CUBE * square * x))
        slope = GELU_TANH * (1 + 3 * GELU_CUBE * square)
        return grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
    return grad * (0.5 * (1 + erf(x * SQRT_HALF)) + x * GELU_DENSITY * exp(x * x * -0.5))


@elementwise("sigmoid_backward")
def sigmoid_backward(grad: Element, y: Element) -> Element:
    return grad * (1 - y) * y


@elementwise("tanh_backward")
def tanh_backward(grad: Element, y: Element) -> Element:
    return grad * (1 - y * y)


@lowers("log_sigmoid_forward")
def log_sigmoid(builder: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """min(x, 0) - log1p(exp(-|x|)), and exp(-|x|) for the backward."""
    output, kept = builder.metas
    assert output is not None
    if kept is None or kept.shape != output.shape:
        kept = Meta(output.shape, output.strides, output.dtype)
    buffer = formula_map(builder, lambda e: exp(-abs(e)), (x,), meta=kept, name="exp_abs")
    answer = formula_map(builder, lambda e, z: smaller(0, e) - log1p(z), (x, buffer), meta=output)
    return answer, buffer


@elementwise("log_sigmoid_backward")
def log_sigmoid_backward(grad: Element, x: Element, buffer: Operand) -> Element:
    z = exp(-abs(x))
    below = where(x < 0, grad, grad * 0)
    return below - where(x < 0, grad, -grad) * (z / (1 + z))
