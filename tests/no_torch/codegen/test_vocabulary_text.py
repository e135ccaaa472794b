"""The text that the vocabulary returns: what is written, what the prelude holds, and when."""

from __future__ import annotations

import math
import re
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.codegen.cpp.isa import AVX2, AVX512, ISAS, PORTABLE
from tcw.compiler.codegen.cpp.vocabulary import NAMES, Vocabulary
from tcw.compiler.codegen.cpp.vocabulary.lanes import is_call
from tcw.compiler.codegen.cpp.vocabulary.types import literal
from tcw.compiler.loops.dtypes import BYTES, FLOATS, INTEGERS
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.verifier.check_expressions import WHOLE

F32 = "float32"


def test_expressions_read_as_written_by_hand() -> None:
    code = Vocabulary(AVX512).lanes(16)
    half = code.constant(0.5, F32)
    assert code.load(F32, "x + i") == "load16(x + i)"
    assert code.apply("mul", ["x + 1", half], [F32, F32], F32) == "(x + 1) * 0.5f"
    assert code.apply("sub", [half, "load16(p)"], [F32, F32], F32) == "0.5f - load16(p)"
    assert code.apply("exp", ["x - m"], [F32], F32) == "exp(x - m)"
    assert code.apply("where", ["m", "x", half], ["bool", F32, F32], F32) == (
        "m ? x : broadcast16(0.5f)"
    )
    assert code.store("bfloat16", "y + i", "v") == "store(y + i, v);"
    assert code.apply("convert", ["i"], ["int32"], F32) == "to_f32(i)"
    assert code.reduce("sum", "s", F32) == "lanes_sum(s)"


def test_wide_registers_are_reduced_by_halves() -> None:
    """Shuffles within 16 bytes are cheaper than those across a register."""
    vocabulary = Vocabulary(AVX512)
    vocabulary.lanes(16).reduce("max", "v", F32)
    vocabulary.lanes(8).reduce("sum", "v", "float64")
    turned = [line for line in vocabulary.prelude().splitlines() if "w = __builtin_shuffle" in line]
    assert [line.partition(" { ")[0] for line in turned] == [
        "INLINE float lanes_max(f32x4 v)",
        "INLINE double lanes_sum(f64x2 v)",
    ]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_the_best_of_wide_values_is_selected_by_their_own_comparison(dtype: str) -> None:
    """Its mask is not narrowed to 32 bits and widened again for the value and for the index."""
    vocabulary = Vocabulary(AVX2)
    vocabulary.lanes(4).arg_update("argmin", "best", "at", "v", "i", dtype)
    assert "i64x4 better = " in vocabulary.prelude()
    assert "mask4" not in vocabulary.prelude()


def test_one_lane_is_scalar_code() -> None:
    code = Vocabulary(AVX512).lanes(1)
    assert [code.type(dtype) for dtype in (F32, "int64", "uint8", "bool", "bfloat16")] == [
        "float",
        "long",
        "unsigned char",
        "bool",
        "float",
    ]
    assert code.load(F32, "x + i") == "*(x + i)"
    assert code.apply("exp", ["x"], [F32], F32) == "__builtin_expf(x)"
    assert code.apply("add", ["a", "b"], ["int8", "int8"], "int8") == "(signed char)(a + b)"
    assert code.reduce("sum", "s", F32) == "s"


def test_the_prelude_holds_what_was_used_and_its_parts_before_it() -> None:
    vocabulary = Vocabulary(AVX2)
    assert vocabulary.prelude() == ""
    code = vocabulary.lanes(8)
    code.load("bfloat16", "x")
    text = vocabulary.prelude()
    order = [
        "struct bf16",
        "typedef float f32x8",
        "f32x8 bf16_to_f32",
        "f32x8 load8(const bf16* p)",
    ]
    assert sorted(map(text.index, order)) == [text.index(part) for part in order]
    assert "exp" not in text
    assert "#include" not in text
    code.apply("exp", ["x"], [F32], F32)
    assert "f32x8 exp(f32x8 x)" in vocabulary.prelude()


def test_every_operator_has_a_form_at_every_width() -> None:
    for isa in ISAS.values():
        for size in (4, 8):
            code = Vocabulary(isa).lanes(isa.lanes((size,)))
            for dtype in ("float32", "int32", "bool") if size == 4 else ("float64", "int64"):
                for op, row in OPERATORS.items():
                    args = [f"x{k}" for k in range(row.arity)]
                    operands = [dtype] * row.arity
                    if op == "where":
                        operands[0] = "bool"
                    try:
                        text = code.apply(op, args, operands, dtype)
                    except KeyError:
                        assert dtype not in FLOATS or op in WHOLE or op.startswith("bitwise"), op
                        continue
                    for name in re.findall(r"([A-Za-z_]\w*)\(", text):
                        assert name in NAMES or name.startswith("__builtin_"), (name, text)
                    assert all(arg in text for arg in args) or row.boolean, (op, text)


def test_the_same_calls_give_the_same_text() -> None:
    def text() -> str:
        vocabulary = Vocabulary(AVX512)
        code = vocabulary.lanes(16)
        for op in ("erf", "tanh", "sin", "pow", "remainder"):
            row = OPERATORS[op]
            code.apply(op, ["x", "y"][: row.arity], [F32] * row.arity, F32)
        return vocabulary.prelude()

    assert text() == text()


def test_a_vector_wider_than_the_machines_is_refused() -> None:
    with pytest.raises(ValueError, match="i64 in 16 lanes is wider than the 64 bytes"):
        Vocabulary(AVX512).lanes(16).type("int64")
    with pytest.raises(ValueError, match="f32 in 8 lanes is wider than the 16 bytes"):
        Vocabulary(PORTABLE).lanes(8).type(F32)


def test_what_aten_does_not_define_is_a_key_error() -> None:
    code = Vocabulary(AVX512).lanes(16)
    with pytest.raises(KeyError, match="exp is not defined on int32"):
        code.apply("exp", ["x"], ["int32"], "int32")
    with pytest.raises(KeyError, match="sub is not defined on bool"):
        code.apply("sub", ["x", "y"], ["bool", "bool"], "bool")


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, "float32", "0.1f"),
        (1e-05, "bfloat16", "1e-05f"),
        (2, "float32", "2.0f"),
        (-0.0, "float32", "-0.0f"),
        (1 / 3, "float64", "0.3333333333333333"),
        (1e39, "float32", "__builtin_inff()"),
        (-math.inf, "float64", "-__builtin_inf()"),
        (math.nan, "float32", '__builtin_nanf("")'),
        (-(2**63), "int64", "(-9223372036854775807L - 1)"),
        (300, "uint8", "(unsigned char)44"),
        (True, "bool", "true"),
    ],
)
def test_literals(value: float, dtype: str, text: str) -> None:
    assert literal(value, dtype) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_literals_read_back_exactly(value: float) -> None:
    text = literal(value, "float32")
    assert text.endswith("f")
    assert struct.pack("f", float(text[:-1])) == struct.pack("f", value)


@given(st.integers(-(2**70), 2**70), st.sampled_from(sorted(INTEGERS)))
def test_integer_literals_wrap(value: int, dtype: str) -> None:
    text = re.sub(r"\((un)?(signed )?(char|short)\)|L", "", literal(value, dtype))
    number = eval(text)
    assert (number - value) % 2 ** (8 * BYTES[dtype]) == 0


@pytest.mark.parametrize(
    ("text", "answer"),
    [("f(x)", True), ("(a + b)", True), ("f(x) + g(y)", False), ("x", False), ("f(g(x), y)", True)],
)
def test_a_call_needs_no_parenthesis(text: str, answer: bool) -> None:
    assert is_call(text) is answer


def test_nothing_of_codegen_imports_torch() -> None:
    code = "import tcw.compiler.codegen.cpp.vocabulary, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
