"""Random numbers, drawn by the engine's own library with the bits that ATen's kernels would draw.

A draw is a call (`tcw.compiler.loops.graph.DRAWS`); what is made of its numbers is loops. ATen
fills memory in the order of its strides, one number after another: so is the order of a draw. It is
left to ATen where it goes another way: memory with gaps, generators of the caller's own.

Sources: aten/src/ATen/native/cpu/DistributionTemplates.h, native/Distributions.cpp, Dropout.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tcw.compiler.loops.dtypes import FLOATS, INTEGERS, REDUCED, compute_dtype, limits, rounded
from tcw.compiler.loops.graph import DRAWS, Call, Result
from tcw.compiler.loops.layouts import dense_order, row_major, same_strides
from tcw.compiler.loops.sizes import product
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.calls import tensor_in_memory
from tcw.compiler.lowering.copies import rounded_to
from tcw.compiler.lowering.elements import Element, formula_map
from tcw.compiler.lowering.registry import Lowered, NoLowering, Worth, estimates, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor

ATEN, CALL = 2500.0, 3600.0
"""Nanoseconds per call, of ATen and of our library."""

DROPOUT = 7000.0
"""Nanoseconds of ATen's three calls that make a dropout."""

NANOSECONDS = {
    "uniform": (2.8, 0.3),
    "uniform float64": (4.2, 0.8),
    "normal": (3.4, 0.9),
    "normal float64": (17.0, 2.1),
    "normal pairs": (28.0, 2.5),
    "bernoulli": (9.0, 0.5),
    "exponential": (19.0, 1.7),
    "geometric": (17.0, 1.8),
    "cauchy": (24.0, 2.2),
    "log_normal": (30.0, 3.4),
    "integers": (2.8, 0.8),
    "slopes": (4.0, 1.6),
}
"""Nanoseconds a number, by ATen and by us, on a Zen 4 core with AVX-512."""

MOVED = 7000.0
"""Nanoseconds of ATen's calls that draw normal numbers, multiply and add."""

CHECK = 6000.0
"""Nanoseconds of our check of all parameters."""

UNKNOWN = 1 << 16
"""How many numbers a draw of symbolic size is taken to have."""

DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""Bits of a mantissa."""

LARGEST_RANGE = 1 << 28
"""From this range on, ATen draws 64 bits for an integer."""

_INTEGERS = {
    "bool": (0, 1),
    **{dtype: limits(dtype) for dtype in INTEGERS},
    **{dtype: (-(1 << n), 1 << n) for dtype, n in DIGITS.items()},
}
"""The least and the greatest integer that a dtype holds, with all between them."""


def drawn(builder: Builder, name: str, meta: Meta, *parameters: Any) -> Tensor:
    """A tensor of random numbers. Raises `NoLowering` if ATen would draw them in another way."""
    refuse(builder, name, meta, parameters)
    return _call(builder, name, meta, (meta.shape, meta.strides, meta.dtype, *parameters))


def _call(builder: Builder, name: str, meta: Meta, arguments: tuple[Any, ...]) -> Tensor:
    result = Result(builder.fresh(builder.node), meta.dtype, meta.shape, meta.strides)
    target = f"{DRAWS}{name}.default"
    origins = (builder.node,)
    node = Call(result.name, target, arguments, (), (result,), origins=origins, effect=True)
    builder.graph.nodes.append(node)
    return tensor_in_memory(result.name, meta)


def refuse(builder: Builder, name: str, meta: Meta, parameters: tuple[Any, ...]) -> None:
    if not builder.on_cpu:
        raise NoLowering("the library draws numbers on a CPU")
    if not all(isinstance(parameter, (bool, int, float)) for parameter in parameters):
        raise NoLowering("a parameter that is not a number")
    if not _valid(name, meta.dtype, *parameters):
        raise NoLowering("a parameter that ATen refuses, or for which it draws otherwise")
    if 0 in meta.shape:
        raise NoLowering("no elements")
    if dense_order(meta.shape, meta.strides) is None:
        raise NoLowering("memory with gaps")


def _valid(name: str, dtype: str, *parameters: float) -> bool:
    """Whether ATen takes these parameters, and draws with them as the library does."""
    first, second = (*parameters, 0, 0)[:2]
    far = float("inf")
    if name == "bernoulli":
        return 0 <= first <= 1
    if name == "geometric":
        return 0 < first < 1
    if name == "exponential":
        return 0 < first < far
    if name == "integers":
        least, greatest = _INTEGERS[dtype]
        return least <= first < second <= greatest + 1 and second - first < LARGEST_RANGE
    if name == "uniform":
        wide = 3e4 if dtype == "float16" else 1e38
        return -wide <= first <= second <= wide
    least_scale = second > 0 or (name == "normal" and second == 0)
    return abs(first) < far and least_scale and second < far


def _row_major(meta: Meta) -> Meta:
    """The same shape in the memory order in which ATen draws numbers that it then moves."""
    return replace(meta, strides=row_major(meta.shape).strides)


def _is_row_major(meta: Meta) -> bool:
    return same_strides(meta.shape, meta.strides, row_major(meta.shape).strides)


def _only(keywords: dict[str, Any]) -> None:
    if keywords.get("generator") is not None:
        raise NoLowering("a generator of the caller's own")


_DRAWS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "rand.default": lambda *_, **named: ("uniform", 0, 1),
    "rand_like.default": lambda *_, **named: ("uniform", 0, 1),
    "uniform.default": lambda tensor, start=0, end=1, **named: ("uniform", start, end),
    "randn.default": lambda *_, **named: ("normal", 0, 1),
    "randn_like.default": lambda *_, **named: ("normal", 0, 1),
    "normal_functional.default": lambda tensor, mean=0, std=1, **named: ("normal", mean, std),
    "normal.float_float": lambda mean, std, size, **named: ("normal", mean, std),
    "exponential.default": lambda tensor, lambd=1, **named: ("exponential", lambd),
    "geometric.default": lambda tensor, p, **named: ("geometric", p),
    "cauchy.default": lambda tensor, median=0, sigma=1, **named: ("cauchy", median, sigma),
    "log_normal.default": lambda tensor, mean=1, std=2, **named: ("log_normal", mean, std),
    "randint.default": lambda high, *_, **named: ("integers", 0, high),
    "randint.low": lambda low, high, *_, **named: ("integers", low, high),
    "randint_like.default": lambda tensor, high, *_, **named: ("integers", 0, high),
    "randint_like.low_dtype": lambda tensor, low, high, *_, **named: ("integers", low, high),
    "random.to": lambda tensor, high, *_, **named: ("integers", 0, high),
    "random.from": lambda tensor, low, high, *_, **named: ("integers", low, high),
}
"""The operations whose results are the numbers themselves: the distribution of a call, and its
parameters."""


def _worth(name: str, meta: Meta, aten: float, loop: float = 0.0) -> Worth:
    """ATen's call, which takes `aten` before its first number, against ours and a loop's `loop`
    nanoseconds a number."""
    count = product(meta.shape)
    size = count if isinstance(count, int) else UNKNOWN
    pairs = name == "normal" and (size < 16 or not _is_row_major(meta))
    wide = f"{name} {'pairs' if pairs else meta.dtype}"
    theirs, ours = NANOSECONDS[wide if wide in NANOSECONDS else name]
    size = max(size, 1)
    how_many = f"{size:,}" if isinstance(count, int) else "an unknown number of"
    return Worth(
        ours + loop + CALL / size,
        theirs + aten / size,
        f"{how_many} {name.replace('_', ' ')} numbers, one at a time in ATen",
    )


def _register(operation: str, which: Any) -> None:
    @lowers(operation)
    def lowered(builder: Builder, *arguments: Any, **keywords: Any) -> Tensor:
        _only(keywords)
        name, *parameters = which(*arguments, **keywords)
        if name != "integers":
            parameters = [float(parameter) for parameter in parameters]
        return drawn(builder, name, builder.meta, *parameters)

    @estimates(operation)
    def worth(builder: Builder, *arguments: Any, **keywords: Any) -> Worth | None:
        name = which(*arguments, **keywords)[0]
        return _worth(name, builder.meta, ATEN)


for _operation, _which in _DRAWS.items():
    _register(_operation, _which)


# bernoulli and dropout: a mask, and loops that read it


def _mask(builder: Builder, meta: Meta, p: Any) -> Tensor:
    return drawn(builder, "bernoulli", replace(meta, dtype="bool"), p)


@lowers("bernoulli.p")
def bernoulli(builder: Builder, tensor: Tensor, p: Any = 0.5, **keywords: Any) -> Tensor:
    _only(keywords)
    made = _mask(builder, builder.meta, p)
    if builder.meta.dtype == "bool":
        return made
    return formula_map(builder, lambda drawn: drawn, (made,))


@estimates("bernoulli.p")
def bernoulli_worth(builder: Builder, *arguments: Any, **keywords: Any) -> Worth | None:
    return _worth("bernoulli", builder.meta, ATEN, 0.2)


@lowers("native_dropout.default")
def native_dropout(builder: Builder, tensor: Tensor, p: Any, train: Any = True) -> Lowered:
    if train is False:
        raise NoLowering("a dropout that does not train draws nothing")
    if not isinstance(p, (int, float)):
        raise NoLowering("a parameter that is not a number")
    kept, mask = builder.metas
    if kept is None or kept.dtype not in FLOATS:
        raise NoLowering("a dropout of integers")
    shape = kept.shape
    left = 1.0 - p
    scale = 0.0 if left == 0 else 1.0 / left
    made = _mask(builder, mask or builder.contiguous(shape, "bool"), left)

    def scaled(x: Element, drawn: Element) -> Element:
        return x * drawn * scale

    return formula_map(builder, scaled, (tensor, made)), made


@estimates("native_dropout.default")
def dropout_worth(builder: Builder, tensor: Tensor, p: Any, train: Any = True) -> Worth | None:
    return _worth("bernoulli", builder.meta, DROPOUT, 0.3)


# a probability or a deviation for each number: a draw whose call checks them, and a loop


def _for_each(builder: Builder, name: str, given: Tensor, meta: Meta) -> Tensor:
    """Numbers of a distribution without parameters, after a look at those of `given`."""
    refuse(builder, {"chances": "uniform", "deviations": "normal"}[name], meta, (0.0, 1.0))
    if 0 in given.shape:
        raise NoLowering("no elements")
    operand = builder.in_memory(given)
    return _call(builder, name, meta, (operand, meta.shape, meta.strides, meta.dtype))


@lowers("bernoulli.default", "bernoulli.Tensor")
def bernoulli_of_each(builder: Builder, *tensors: Tensor, **keywords: Any) -> Tensor:
    _only(keywords)
    chances = tensors[-1]
    if not isinstance(chances, Tensor) or chances.dtype not in FLOATS:
        raise NoLowering("probabilities that are not floats")
    wide = "float64" if chances.dtype == "float64" else "float32"
    units = _for_each(builder, "chances", chances, replace(builder.meta, dtype=wide))
    return formula_map(builder, lambda unit, p: unit < p, (units, chances), compute=wide)


@estimates("bernoulli.default", "bernoulli.Tensor")
def bernoulli_of_each_worth(builder: Builder, *tensors: Any, **keywords: Any) -> Worth | None:
    if not isinstance(tensors[-1], Tensor):
        return None
    wide = tensors[-1].dtype == "float64"
    units = replace(builder.meta, dtype="float64" if wide else "float32")
    return _worth("uniform", units, ATEN - CHECK, 0.3)


@lowers("normal.Tensor_Tensor", "normal.float_Tensor")
def normal_of_each(builder: Builder, mean: Any, std: Tensor, **keywords: Any) -> Tensor:
    """ATen multiplies, rounds, and adds."""
    _only(keywords)
    meta = builder.meta
    if any(isinstance(one, Tensor) and one.dtype != meta.dtype for one in (mean, std)):
        raise NoLowering("means and deviations of several dtypes")
    if not isinstance(mean, (Tensor, bool, int, float)):
        raise NoLowering("a parameter that is not a number")
    if not isinstance(mean, Tensor) and meta.dtype in REDUCED:
        mean = rounded(float(mean), meta.dtype)
    numbers = _for_each(builder, "deviations", std, _row_major(meta))

    def around(number: Element, deviation: Element, by: Any) -> Element:
        product = number * deviation
        if meta.dtype in REDUCED:
            product = Element(rounded_to(product.expression, meta.dtype)).to(product.dtype)
        moved: Element = product + by
        return moved

    return formula_map(builder, around, (numbers, std, mean))


@lowers("normal.Tensor_float")
def normal_about_each(builder: Builder, mean: Tensor, std: Any = 1.0, **keywords: Any) -> Tensor:
    _only(keywords)
    if mean.dtype != builder.meta.dtype:
        raise NoLowering("means of another dtype")
    numbers = drawn(builder, "normal", _row_major(builder.meta), 0.0, std)
    return formula_map(builder, lambda number, by: number + by, (numbers, mean))


@estimates("normal.Tensor_Tensor", "normal.float_Tensor", "normal.Tensor_float")
def normal_of_each_worth(builder: Builder, *arguments: Any, **keywords: Any) -> Worth | None:
    return _worth("normal", _row_major(builder.meta), MOVED, 0.3)


# rrelu: a slope for each element that is not positive


@lowers("rrelu_with_noise_functional.default")
def rrelu(
    builder: Builder,
    tensor: Tensor,
    noise: Tensor,
    lower: Any = 0.125,
    upper: Any = 1 / 3,
    training: Any = False,
    **keywords: Any,
) -> Lowered:
    _only(keywords)
    meta = builder.metas[0] or builder.metas[1]
    if training is not True or meta is None:
        raise NoLowering("without slopes to be drawn")
    if not (builder.on_cpu and isinstance(lower, (int, float)) and isinstance(upper, (int, float))):
        raise NoLowering("a parameter that is not a number")
    every = [one for one in builder.metas if one is not None]
    if 0 in meta.shape or not all(map(_is_row_major, every)):
        raise NoLowering("memory that is not row-major")
    if meta.dtype not in FLOATS or not lower <= upper:
        raise NoLowering("slopes that are not floats, or none")
    wide = replace(meta, dtype=compute_dtype(meta.dtype))
    held = tensor if wide == meta else formula_map(builder, lambda x: x, (tensor,), meta=wide)
    operand = builder.in_memory(held, row_major(meta.shape).strides)
    slopes = _call(builder, "slopes", wide, (operand, float(lower), float(upper)))
    result = formula_map(builder, lambda x, slope: x * slope, (tensor, slopes), meta=meta)
    if wide == meta:
        return result, slopes
    return result, formula_map(builder, lambda slope: slope, (slopes,), meta=meta)


@estimates("rrelu_with_noise_functional.default")
def rrelu_worth(builder: Builder, *arguments: Any, **keywords: Any) -> Worth | None:
    meta = builder.metas[0] or builder.metas[1]
    return None if meta is None else _worth("slopes", meta, ATEN, 0.3)
