"""Transposed reads beside sums, scans and riders: any size and dtype, and that tiles are used."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from tcw.compiler.codegen.cpp.cpp_unit import unit
from tcw.compiler.codegen.cpp.isa import AVX512, Isa, runnable
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.processor import feature_flags
from tcw.compiler.protocol.decision import Decision
from tests.cpu.codegen.nests import compile_programs, programs
from tests.cpu.codegen.test_transposes import numbers, text_of
from tests.cpu.codegen.units import each_isa
from tests.long import mostly_long

ISAS = runnable(feature_flags())
Tensors = tuple[torch.Tensor, ...]


def columns(g: torch.Tensor, x: torch.Tensor) -> Tensors:
    """The gradients of a product with a row, whose other factor is transposed."""
    return g + 1, (g * x.mT).sum(0)


def columns_alone(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (g * x.mT).sum(0)


def whole(g: torch.Tensor, x: torch.Tensor) -> Tensors:
    return g * 2, (g * x.mT).sum()


def rows_and_columns(g: torch.Tensor, x: torch.Tensor) -> Tensors:
    y = g + x.mT
    return y - y.amax(1, keepdim=True), (y * 2).sum(0)


def read_back(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    y = g + x.mT
    return y - y.sum(0)


def scanned_down(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (g + x.mT).cumsum(0)


def scanned_along(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (g + x.mT).cumsum(1)


def squares(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (g * x.permute(2, 1, 0)).sum((1, 2))


def middles(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (g * x.permute(2, 1, 0)).sum(1)


MATRICES = (
    columns,
    columns_alone,
    whole,
    rows_and_columns,
    read_back,
    scanned_down,
    scanned_along,
)
CUBES = (squares, middles)
Case = Callable[[torch.Tensor, torch.Tensor], object]


@pytest.mark.parametrize("case", [*MATRICES, *CUBES], ids=lambda case: case.__name__)
def test_no_element_is_loaded_by_itself(case: Case) -> None:
    shape = (1024, 64) if case in MATRICES else (16, 64, 64)
    inputs = torch.randn(shape), torch.randn(shape[::-1])
    text = text_of(AVX512, case, *inputs)
    assert "transpose_tile" in text
    others = re.sub(r"load_strided16\(sum\b", "", text)
    assert "load_strided" not in others, "but of the few totals"


@pytest.mark.parametrize("part", mostly_long(range(3), (0,)))
@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_any_size(isa: Isa, part: int) -> None:
    """Each part has each function in each dtype, and in each size."""
    cases = []
    for which, case in enumerate(MATRICES):
        for kind, dtype in enumerate((torch.float32, torch.float64, torch.int32, torch.bfloat16)):
            for size, (rows, width) in enumerate(((64, 64), (37, 200), (131, 29))):
                wanted = dtype != torch.bfloat16 or case is columns
                if wanted and (which + kind + size) % 3 == part:
                    inputs = numbers(dtype, rows, width), numbers(dtype, width, rows)
                    cases.append((case, inputs))
    for case in CUBES:
        for n, m, k in ((16, 20, 33), (19, 64, 48)):
            inputs = numbers(torch.float32, n, m, k), numbers(torch.float32, k, m, n)
            cases.append((case, inputs))
    made = compile_programs([programs(case, *inputs)[0] for case, inputs in cases], isa)
    for (case, inputs), program in zip(cases, made, strict=True):
        results = case(*inputs)
        expected = results if isinstance(results, tuple) else (results,)
        for got, wanted in zip(program.run(inputs), expected, strict=True):
            assert torch.equal(got, wanted), (case.__name__, inputs[0].dtype, inputs[0].shape)


def test_tiles_are_a_decision() -> None:
    """Overriding it reads what is transposed element by element."""
    (program,) = programs(columns, torch.randn(1024, 64), torch.randn(64, 1024))
    asked = []

    def ask(decision: Decision) -> str:
        asked.append(decision)
        return "none" if decision.kind == "tile" else decision.default

    body = unit(None, program, Vocabulary(AVX512), ask=ask).code
    assert "load_strided" in body
    (tile,) = (decision for decision in asked if decision.kind == "tile")
    assert (tile.default, tile.legal()) == ("i", ("none", "i"))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return x.softmax(-1)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    return x.log_softmax(-1)


def log_sums(x: torch.Tensor) -> torch.Tensor:
    return x.logsumexp(-1)


def gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._log_softmax_backward_data(x, x.clamp(max=0), -1, x.dtype)


def stored_between(x: torch.Tensor) -> Tensors:
    z = x.sigmoid()
    return z, z / z.sum(-1, keepdim=True)


Row = Callable[[torch.Tensor], object]
SHORT = (softmax, log_softmax, log_sums, gradient, stored_between)


ONE_RESULT = (softmax, log_softmax, log_sums, gradient)
"""Two transposed results cost more than the vectors that rows of 8 elements leave half empty."""


@pytest.mark.parametrize("case", ONE_RESULT, ids=lambda case: case.__name__)
def test_short_rows_lie_on_the_lanes(case: Row) -> None:
    """No vector is reduced across its lanes, and nothing is stored element by element."""
    text = text_of(AVX512, case, torch.randn(2000, 8))
    assert "transpose_edge" in text
    assert "lanes_sum(" not in text
    assert "strided" not in text
    assert "lanes_sum(" in text_of(AVX512, case, torch.randn(300, 200)), "these are long"


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_short_rows_of_any_size(isa: Isa) -> None:
    torch.manual_seed(0)
    cases = []
    for case in SHORT:
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            for shape in ((2001, 33), (130, 5), (17, 17), (3, 700, 9)):
                if dtype == torch.float32 or shape[-1] == 33:
                    cases.append((case, torch.randn(shape).to(dtype)))
    made = compile_programs([programs(case, x)[0] for case, x in cases], isa)
    for (case, x), program in zip(cases, made, strict=True):
        results = case(x)
        expected = results if isinstance(results, tuple) else (results,)
        for got, wanted in zip(program.run((x,)), expected, strict=True):
            torch.testing.assert_close(got, wanted)


def weighted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x * w).softmax(-1)


def weighted_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=0.1) * w


def weighted_sums(x: torch.Tensor, w: torch.Tensor) -> Tensors:
    return (x * w).cumsum(-1), (x + w).exp().sum(-1)


def weighted_gradient(x: torch.Tensor, w: torch.Tensor) -> Tensors:
    """The weight's gradient rides."""
    y = (x * w).softmax(-1)
    return y, (y * x).sum(0)


Weighted = Callable[[torch.Tensor, torch.Tensor], object]
JOINED = (weighted, weighted_norm, weighted_sums)


@pytest.mark.parametrize("case", JOINED, ids=lambda case: case.__name__)
def test_tiles_cover_all_short_rows_beside_each_other(case: Weighted) -> None:
    """A tensor of 6 rows of 3 elements has one tile of 18, not six of 3."""
    text = text_of(AVX512, case, torch.randn(4000, 6, 3), torch.randn(6, 3))
    assert "18 - r" in text
    assert "transpose_edge" in text
    assert not re.search(r"strided16\(arg\b", text)


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_joined_rows_of_any_size(isa: Isa) -> None:
    torch.manual_seed(0)
    cases = []
    for case in (*JOINED, weighted_gradient):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            for shape in ((6, 3), (5, 5), (4, 2), (3, 16), (2, 3, 5), (130, 7)):
                if dtype == torch.float32 or shape[-1] == 3:
                    x, w = torch.randn(333, *shape).to(dtype), torch.randn(shape).to(dtype)
                    cases.append((case, (x, w)))
    made = compile_programs([programs(case, *inputs)[0] for case, inputs in cases], isa)
    for (case, inputs), program in zip(cases, made, strict=True):
        results = case(*inputs)
        expected = results if isinstance(results, tuple) else (results,)
        for got, wanted in zip(program.run(inputs), expected, strict=True):
            if got.dtype == torch.bfloat16:  # eager rounds several times
                torch.testing.assert_close(got, wanted, atol=2**-6, rtol=2**-5)
            else:
                torch.testing.assert_close(got, wanted)
