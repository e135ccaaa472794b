"""Activations as ATen's kernels compute them, and the gradients that torch does not decompose.

Source: aten/src/ATen/native/cpu/Activation.cpp, including the gradients at kinks.
"""

from __future__ import annotations

import math

from tcw.compiler.lowering.elements import (
    Element,
    elementwise,
    erf,
    exp,
    expm1,
    larger,
    minimum,
    smaller,
    tanh,
    where,
)
from tcw.compiler.lowering.promotion import Number

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


@elementwise("hardtanh")
def hardtanh(x: Element, low: Number = -1, high: Number = 1) -> Element:
    return smaller(high, larger(low, x))


@elementwise("hardsigmoid")
def hardsigmoid(x: Element) -> Element:
    return smaller(6, larger(0, x + 3)) / 6


@elementwise("hardswish")
def hardswish(x: Element) -> Element:
    return x * smaller(6, larger(0, x + 3)) / 6


@elementwise("hardshrink_backward", "softshrink_backward")
def shrink_backward(grad: Element, x: Element, limit: Number) -> Element:
    return where((x >= -limit) & (x <= limit), 0, grad)


@elementwise("leaky_relu")
def leaky_relu(x: Element, slope: Number = 0.01) -> Element:
    return where(x > 0, x, x * slope)


@elementwise("elu")
def elu(x: Element, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Element:
    scaled = x if input_scale == 1 else x * input_scale
    return where(x <= 0, expm1(scaled) * (alpha * scale), x if scale == 1 else x * scale)


@elementwise("selu")
def selu(x: Element) -> Element:
    return elu(x, SELU_ALPHA, SELU_SCALE, 1)


@elementwise("silu")
def silu(x: Element) -> Element:
    return x / (1 + exp(-x))


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
