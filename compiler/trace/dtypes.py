"""Short names of dtypes, as torch abbreviates them (torch/utils/_dtype_abbrs.py)."""

from __future__ import annotations

SHORT_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64",
    "complex128": "c128", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint8": "u8", "bool": "b8",
}  # fmt: skip


def short_dtype(name: str) -> str:
    """`float32` -> `f32`; a dtype without a short name is unchanged."""
    return SHORT_NAMES.get(name, name)
