"""Formulas for one element: expressions with Python operators, and lowerings built from them.

A family writes an operation as a function of `Element`s, as in a textbook:

    @elementwise("leaky_relu")
    def leaky_relu(x: Element, slope: Number = 0.01) -> Element:
        return where(x > 0, x, x * slope)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tcw.compiler.loops.dtypes import FLOATS, REDUCED, compute_dtype, limits, rounded
from tcw.compiler.loops.expressions import Const, Expression, Iota, Op, SizeOf, convert
from tcw.compiler.loops.layouts import Layout, Shape
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.sizes import Size, Symbolic
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.promotion import Number, promote
from tcw.compiler.lowering.reals import Real, StoredNumber
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor

Formula = TypeVar("Formula", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """The value of an expression at one position. Numbers combined with it take its dtype."""

    expression: Expression

    @property
    def dtype(self) -> str:
        return self.expression.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    def to(self, dtype: str) -> Element:
        if dtype == self.dtype:
            return self
        if dtype == "bool":
            return apply("ne", self, 0)
        inner = self.expression
        if dtype in REDUCED and isinstance(inner, Op) and inner.name == "convert":
            (stored,) = inner.args
            if stored.dtype == dtype and inner.dtype == "float32":
                return Element(stored)  # a round trip
        return Element(convert(self.expression, dtype))

    def __add__(self, other: Element | Number) -> Element:
        return apply("add", self, other)

    def __radd__(self, other: Number) -> Element:
        return apply("add", other, self)

    def __sub__(self, other: Element | Number) -> Element:
        return apply("sub", self, other)

    def __rsub__(self, other: Number) -> Element:
        return apply("sub", other, self)

    def __mul__(self, other: Element | Number) -> Element:
        return apply("mul", self, other)

    def __rmul__(self, other: Number) -> Element:
        return apply("mul", other, self)

    def __truediv__(self, other: Element | Number) -> Element:
        if not isinstance(other, Element) and is_power_of_two(other):
            return self * (1 / other)
        return apply("div", self, other)

    def __rtruediv__(self, other: Number) -> Element:
        return apply("div", other, self)

    def __neg__(self) -> Element:
        return apply("neg", self)

    def __abs__(self) -> Element:
        return apply("abs", self)

    def __lt__(self, other: Element | Number) -> Element:
        return apply("lt", self, other)

    def __le__(self, other: Element | Number) -> Element:
        return apply("le", self, other)

    def __gt__(self, other: Element | Number) -> Element:
        return apply("gt", self, other)

    def __ge__(self, other: Element | Number) -> Element:
        return apply("ge", self, other)

    def __and__(self, other: Element | Number) -> Element:
        return apply("bitwise_and", self, other)

    def __or__(self, other: Element | Number) -> Element:
        return apply("bitwise_or", self, other)

    def __xor__(self, other: Element | Number) -> Element:
        return apply("bitwise_xor", self, other)

    def __invert__(self) -> Element:
        return apply("bitwise_not", self)


Operand = Element | Number


def apply(name: str, *args: Operand) -> Element:
    """Apply an operator of `OPERATORS`; numbers take the dtype of the other operands."""
    typed = args[1:] if name == "where" else args
    dtype = next(argument.dtype for argument in typed if isinstance(argument, Element))
    operands = tuple(
        argument.expression if isinstance(argument, Element) else constant(argument, dtype)
        for argument in args
    )
    return Element(Op(name, operands, "bool" if OPERATORS[name].boolean else dtype))


def constant(number: Number, dtype: str) -> Const:
    """The number as ATen converts it to `dtype`; 16-bit floats are held in float32."""
    if dtype in FLOATS:
        return Const(float(number), compute_dtype(dtype))
    if dtype == "bool":
        return Const(bool(number), dtype)
    if isinstance(number, float) and not math.isfinite(number):
        raise NoLowering(f"{number} is not of dtype {dtype}")
    least, greatest = limits(dtype)
    if not least <= int(number) <= greatest:
        raise NoLowering(f"{number} is out of range for {dtype}")
    return Const(int(number), dtype)


def number(value: Number, dtype: str) -> Element:
    """The same number at every position."""
    return Element(constant(value, dtype))


def size_element(size: Size, dtype: str = "int64") -> Element:
    """A size as an element."""
    return number(size, dtype) if isinstance(size, int) else Element(SizeOf(size)).to(dtype)


def is_power_of_two(value: Number) -> bool:
    """Whether 1/value is exact, so that multiplying by it equals dividing."""
    if not value or not math.isfinite(value):
        return False
    mantissa, exponent = math.frexp(value)
    return abs(mantissa) == 0.5 and abs(exponent) < 100


def together(*operands: Operand) -> list[Element]:
    """The operands as elements; numbers take the dtype of the elements among them."""
    dtype = next(operand.dtype for operand in operands if isinstance(operand, Element))
    return [o if isinstance(o, Element) else number(o, dtype) for o in operands]


def unary(name: str) -> Callable[[Element], Element]:
    return lambda x: apply(name, x)


def binary(name: str) -> Callable[[Operand, Operand], Element]:
    return lambda x, y: apply(name, x, y)


def where(condition: Element, x: Operand, y: Operand) -> Element:
    return apply("where", condition, x, y)


eq, ne = binary("eq"), binary("ne")
maximum, minimum = binary("maximum"), binary("minimum")
copysign = binary("copysign")
isnan, isinf = unary("isnan"), unary("isinf")
exp, exp2, expm1 = unary("exp"), unary("exp2"), unary("expm1")
log, log1p = unary("log"), unary("log1p")
sqrt, rsqrt, sign = unary("sqrt"), unary("rsqrt"), unary("sign")
sigmoid, tanh, erf, erfc = unary("sigmoid"), unary("tanh"), unary("erf"), unary("erfc")
floor, trunc, nearest = unary("floor"), unary("trunc"), unary("round")


def larger(x: Operand, y: Operand) -> Element:
    """The maximum in any dtype; NaN propagates."""
    x, y = together(x, y)
    return x | y if x.dtype == "bool" else maximum(x, y)


def smaller(x: Operand, y: Operand) -> Element:
    """The minimum in any dtype; NaN propagates."""
    x, y = together(x, y)
    return x & y if x.dtype == "bool" else minimum(x, y)


def formula_map(
    builder: Builder,
    formula: Callable[..., Operand],
    args: Sequence[Any],
    keywords: dict[str, Any] | None = None,
    *,
    compute: str = "",
    raw: Sequence[int] = (),
    common: str = "",
    compares: bool = False,
    meta: Meta | None = None,
    name: str = "",
) -> Tensor:
    """A map of a formula over an output. Its tensors and sizes become `Element`s in `compute`.

    `compute` defaults to the output's dtype. Arguments at positions in `raw` keep their dtype.
    Operands are converted to the dtype `common` before computing, which rounds integers if it has
    16 bits; wider floats and numbers are rounded only if the formula `compares`.
    """
    meta = meta or builder.meta
    compute = compute_dtype(compute or meta.dtype)
    order = storage_order(meta.shape, meta.strides)
    sixteen = compares and common in REDUCED

    def element(value: Any, keeps: bool = False) -> Any:
        if isinstance(value, Tensor):
            loaded = Element(builder.load(value, meta.shape, order))
            if keeps:
                return loaded.to(compute_dtype(value.dtype))
            if common in REDUCED and (compares or value.dtype not in FLOATS):
                loaded = loaded.to(common)
            return loaded.to(compute)
        if isinstance(value, Symbolic):
            return Element(SizeOf(value)).to(compute)
        if isinstance(value, Real):
            return Element(value.expression).to(compute)
        if isinstance(value, StoredNumber):
            loaded = Element(builder.load(value.tensor, meta.shape, order))
            return (loaded.to(common) if sixteen else loaded).to(compute)
        return rounded(value, common) if sixteen and isinstance(value, float) else value

    bound = [element(value, position in raw) for position, value in enumerate(args)]
    named = {key: element(value) for key, value in (keywords or {}).items()}
    found = formula(*bound, **named)
    if not isinstance(found, Element):
        found = number(found, meta.dtype)
    return builder.map(found.to(meta.dtype).expression, meta, name)


def elementwise(
    *names: str, raw: Sequence[int] = (), compares: bool = False
) -> Callable[[Formula], Formula]:
    """Register a formula as the lowering of pointwise operations.

    `compares`: compute in the promoted dtype of the operands instead of the output's dtype.
    """

    def register(formula: Formula) -> Formula:
        @lowers(*names)
        def lowering(builder: Builder, *args: Any, **keywords: Any) -> Tensor:
            dtype = promote([*args, *keywords.values()]) if compares else builder.meta.dtype
            return formula_map(
                builder,
                formula,
                args,
                keywords,
                compute=dtype,
                raw=raw,
                common=dtype,
                compares=compares,
            )

        return formula

    return register


def position(
    shape: Shape, dim: int, order: Sequence[int], *, step: int = 1, start: int = 0
) -> Element:
    """The index along one dimension of `shape`, for a domain with its dimensions in this order:
    a line through it, if it has a step or a start."""
    strides = tuple(step if d == dim else 0 for d in order)
    return Element(Iota((Layout(tuple(shape[d] for d in order), strides, start),)))
