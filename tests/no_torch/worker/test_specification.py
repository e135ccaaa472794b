from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tcw.workbench.worker.specification import (
    DTYPES,
    CallSpecification,
    SpecificationError,
    TensorSpecification,
    parse_inputs,
)


@pytest.mark.parametrize(
    ("text", "positional", "keyword"),
    [
        ("f32[8,64]", (TensorSpecification("float32", (8, 64)),), {}),
        (" f32 [ 8 , 64 ] ", (TensorSpecification("float32", (8, 64)),), {}),
        ("bfloat16[]", (TensorSpecification("bfloat16", ()),), {}),
        ("i64[2](50257)", (TensorSpecification("int64", (2,), 0, 50257),), {}),
        ("f64[2](-1.5,1e3)", (TensorSpecification("float64", (2,), -1.5, 1000.0),), {}),
        ("b8[1], 2, -0.5, True", (TensorSpecification("bool", (1,)), 2, -0.5, True), {}),
        ("'a, b', x=None", ("a, b",), {"x": None}),
        ("y=(1, [f16[2], ()],)", (), {"y": (1, [TensorSpecification("float16", (2,)), ()])}),
        ("1, scale=.5", (1,), {"scale": 0.5}),
        (r'"it\'s"', ("it's",), {}),
    ],
)  # fmt: skip
def test_calls(text: str, positional: tuple[object, ...], keyword: dict[str, object]) -> None:
    assert parse_inputs(text) == CallSpecification(positional, keyword)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 0, "no arguments"),
        ("f32", 0, "f32 needs its sizes: f32[8,64]"),
        ("f32[8", 5, "']' is missing"),
        ("f32[8,x]", 6, "expected a size"),
        ("f32[8 4]", 6, "',' or ']' after a size"),
        ("q7[8]", 0, "no dtype 'q7'"),
        ("f32[8], , 2", 8, "found ','"),
        ("f32[8] 2", 7, "',' between two arguments, found '2'"),
        ("x=1, x=2", 5, "x is given twice"),
        ("x=1, 2", 5, "without a name follows"),
        ("hello", 0, "found 'hello'"),
        ("'open", 0, "unterminated string"),
        ("i64[2](5,1)", 6, "the low bound 5 is not below"),
        ("i64[2](1,2,3)", 6, "at most two bounds"),
        ("f32[8],", 7, ""),
    ],
)
def test_errors_point_into_the_text(text: str, column: int, words: str) -> None:
    if text.endswith(","):
        # a comma at the end is no error, as in Python
        assert parse_inputs(text) == parse_inputs(text[:-1])
        return
    with pytest.raises(SpecificationError) as caught:
        parse_inputs(text)
    assert caught.value.column == column
    assert words in str(caught.value)
    assert f"column {column + 1}" in str(caught.value)


tensors = st.builds(
    lambda name, shape: (f"{name}[{','.join(map(str, shape))}]", DTYPES[name], tuple(shape)),
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.integers(0, 10**6), max_size=5),
)


@given(st.lists(tensors, min_size=1, max_size=6))
def test_tensors_come_back_as_written(drawn: list[tuple[str, str, tuple[int, ...]]]) -> None:
    call = parse_inputs(", ".join(text for text, _, _ in drawn))
    assert [(found.dtype, found.shape) for found in call.positional] == [  # type: ignore[union-attr]
        (dtype, shape) for _, dtype, shape in drawn
    ]


@given(st.text(alphabet="f32i64[](),='\"\\ x.-+e_0é\x1b", max_size=40))
@example("0_")
@example("f32[1_]")
def test_any_text_is_read_or_refused(text: str) -> None:
    column = 0
    try:
        parse_inputs(text)
    except SpecificationError as error:
        column = error.column
    assert 0 <= column <= len(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_python_literals_mean_what_they_mean(value: object) -> None:
    assert parse_inputs(repr(value)).positional == (value,)
