"""Kernels in few words."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from tcw.compiler.trace.records import Kernel
from tcw.viewers.labels import kernel_label, short_label


@pytest.mark.parametrize(
    ("label", "short"),
    [
        ("softmax", "softmax"),
        ("mul, _softmax", "softmax"),
        ("prepare_softmax_online, softmax, add, layer_norm", "softmax, layer norm"),
        ("layer_norm, abs, max, gt", "layer norm, max"),
        ("view, permute, select, transpose, clone", "copy"),
        ("copy for reshape, permute", "copy"),
        ("add", "add"),
        ("mul, add", "mul, add"),
        ("mul, add, div", "mul … div"),
        ("embedding, add, layer_norm, layer_norm_backward", "embedding, layer norm"),
        ("scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("embedding, softmax, layer_norm, gelu + 3 more", "embedding … gelu"),
        ("add + 3 more", "add …"),
        ("addmm", "addmm"),
        ("_native_batch_norm_legit_no_training, relu", "batch norm, relu"),
        ("_native_batch_norm_legit_functional", "batch norm"),
        ("max_pool2d_with_indices", "max pool2d"),
        ("", ""),
    ],
)
def test_of_the_forward(label: str, short: str) -> None:
    assert short_label(label) == short


@pytest.mark.parametrize(
    ("label", "short"),
    [
        ("sum, gelu, gelu_backward", "sum, gelu backward"),
        ("layer_norm_backward, layer_norm", "layer norm backward"),
        ("softmax_backward_data, mul", "softmax backward"),
        ("select_backward, select_scatter, add, unsafe_view + 3 more", "add …"),
        ("select_backward", "copy"),
    ],
)
def test_of_the_backward(label: str, short: str) -> None:
    assert short_label(label, backward=True) == short


def test_a_kernel_without_words_keeps_its_name() -> None:
    kernel = Kernel(id="k0", graph="0/0/forward/lowered", name="cpp_x", label="", language="cpp")
    assert kernel_label(kernel) == "cpp_x"


@example(["_", "t"], False)
@example(["native__for_cpu"], False)
@example(["native__backward", "add"], True)
@given(st.lists(st.from_regex(r"\A_?[a-z_]{1,20}\Z"), max_size=8), st.booleans())
def test_a_short_label_is_short_and_says_something(names: list[str], backward: bool) -> None:
    short = short_label(", ".join(names), backward)
    assert len(short.replace(" …", ",").split(",")) <= 2 or "…" in short
    assert bool(short) == any(name.strip("_ ") for name in names)


def test_a_view_by_a_library_is_no_copy() -> None:
    called = Kernel(
        id="k1", name="aten.permute.default", label="permute", graph="0/0", language="aten"
    )
    assert kernel_label(called) == "permute"
    assert kernel_label(structs.replace(called, label="split_with_sizes")) == "split with sizes"
    assert kernel_label(structs.replace(called, label="clone")) == "copy"
    assert kernel_label(structs.replace(called, language="cpp")) == "copy"
