"""Trigonometric and hyperbolic functions: one loop IR operator each.

Source: aten/src/ATen/native/cpu/UnaryOpsKernel.cpp.
"""

from __future__ import annotations

from tcw.compiler.lowering.elements import binary, elementwise, unary

NAMES = (
    *("sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)

for _name in NAMES:
    elementwise(_name)(unary(_name))

elementwise("atan2")(binary("atan2"))
