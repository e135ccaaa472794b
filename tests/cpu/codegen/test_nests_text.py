"""What the generated C++ looks like: goldens that a person can read; equal nests stand once."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.codegen.cpp.cpp_unit import assemble
from tcw.compiler.codegen.cpp.isa import AVX2, AVX512, PORTABLE, Isa
from tcw.compiler.codegen.cpp.nests import emit
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.cpp.vocabulary.types import bits_of
from tcw.compiler.codegen.unit import buffer_dtypes
from tcw.compiler.engine.backend import backend
from tcw.compiler.loops.nest import Nest
from tcw.compiler.rewrites.decompositions import decompositions
from tests.cpu.codegen.nests import programs
from tests.cpu.codegen.texts import text


def test_softmax(golden) -> None:
    words = text(lambda x: x.softmax(-1), torch.randn(4096, 1000), comment="y = x.softmax(-1)")
    golden("codegen/softmax.cpp", words)


def test_online_sum(golden) -> None:
    words = text(lambda x: x.log_softmax(-1), torch.randn(64, 5000), comment="y = log_softmax(x)")
    golden("codegen/online_sum.cpp", words)


def test_layer_norm(golden) -> None:
    x, w = torch.randn(2048, 1024), torch.randn(1024)
    words = text(lambda x, w: F.layer_norm(x, (1024,), w, w), x, w, comment="y = self.norm(x)")
    golden("codegen/layer_norm.cpp", words)


def test_column_sum(golden) -> None:
    words = text(lambda x: (x * 2).sum(0), torch.randn(4096, 1024), comment="y = (x * 2).sum(0)")
    golden("codegen/column_sum.cpp", words)


def test_transposed_add(golden) -> None:
    x = torch.randn(1024, 1024)
    words = text(lambda x, y: y + x.t(), x, x.clone(), comment="z = y + x.t()")
    golden("codegen/transposed_add.cpp", words)


def test_wide_elements_that_are_narrowed_leave_vectors_whole() -> None:
    body = text(lambda x: x.float().cos(), torch.arange(4096), comment="y = x.float().cos()")
    assert "load16_f32(" in body
    body = text(lambda x: (x.float().cos(), x + 1), torch.arange(4096), comment="y = x.cos()")
    assert "load8(" in body


def test_sixteen_bits_that_only_move_stay_as_they_are() -> None:
    index = torch.randperm(64)
    moves = (
        lambda x, i: x.index_select(1, i),
        lambda x, i: x[i],
        lambda x, i: x.t().contiguous(),
        lambda x, i: torch.cat([x, x.flip(0)]),
        lambda x, i: torch.cat([x, x]),
        lambda x, i: F.pad(x, (1, 1), value=-1.5),
        lambda x, i: torch.zeros_like(x).index_copy(0, i, x),
        lambda x, i: x.index_copy(1, i, x),
    )
    for dtype in (torch.bfloat16, torch.float16):
        x = torch.randn(64, 64).to(dtype)
        for move in moves:
            body = text(move, x, index, comment="y = moved(x)")
            assert "bf16" not in body, body
            assert "f32" not in body, body
            assert "short" in body
        assert "f32" not in text(lambda x, i: torch.full_like(x, 0.3), x, index, comment="full")
        assert "f32" in text(lambda x, i: -x, x, index, comment="-x")
    x = torch.randn(64, 64).bfloat16()
    body = text(lambda x, i: (x.flip(0), x + 1), x, index, comment="y = x.flip(0), x + 1")
    assert "bf16" in body  # one of the two computes


def test_booleans_that_only_move_stay_as_they_are() -> None:
    x, index = torch.rand(64, 64) < 0.5, torch.randperm(64)
    for move in (
        lambda x, i: x.index_select(1, i),
        lambda x, i: x.t().contiguous(),
        lambda x, i: F.pad(x, (1, 1), value=True),
        lambda x, i: torch.cat([x, x.flip(0)]),
    ):
        body = text(move, x, index, comment="y = moved(x)")
        assert "mask" not in body, body
        assert "bool" not in body, body
    assert "bool" in text(lambda x, i: ~x, x, index, comment="~x")


def test_numbers_round_to_the_bits_of_a_sixteen_bit_float() -> None:
    far = (1e5, -1e5, 3.4e38, -1e300, float("inf"), float("-inf"), float("nan"))
    for dtype in (torch.bfloat16, torch.float16):
        for number in (0.0, -0.0, 1, True, 0.1, -0.1, 1.00390625, 1e-7, 65519.0, 65520.0, *far):
            bits = torch.tensor(float(number), dtype=dtype).view(torch.int16)
            assert bits_of(number, str(dtype).removeprefix("torch.")) == bits.item(), number


def test_positions_that_are_compared_leave_vectors_whole() -> None:
    x = torch.randn(64, 64)
    for function in (torch.tril, torch.diag_embed, lambda x: torch.arange(64) / 3 + x):
        body = text(function, x, comment="y = f(x)")
        assert "load16(" in body, body
        assert "i64x8" not in body, body
    far = text(lambda x: torch.arange(64) * (1 << 40) < x.long(), x, comment="y = far(x)")
    assert "i64x8" in far


def test_positions_compared_with_a_number_of_the_row_leave_vectors_whole() -> None:
    def one_hot(places: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.arange(100) == places[:, None], x, 0.0)

    places, x = torch.randint(100, (100,)), torch.randn(100, 100)
    found = text(one_hot, places, x, comment="")
    assert "iota_i32x16" in found
    assert "x8" not in found


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_numbers_beyond_all_positions_compare_as_in_eager(name: str) -> None:
    numbers = (-(2**63), -(2**32), -(2**32) + 1, -2, -1, 0, 5, 98, 99, 100, 2**32 + 5, 2**63 - 1)
    places = torch.tensor(numbers)

    def compared(places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        compare = getattr(torch, name)
        at = torch.arange(99)
        return compare(at, places[:, None]).float(), compare(places[:, None], at + 1).float()

    compiled = torch.compile(compared, backend=backend, dynamic=False)
    torch.testing.assert_close(compiled(places), compared(places))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8, torch.bool])
def test_results_that_are_strided_on_the_lanes_are_transposed_in_tiles(dtype) -> None:
    """Two reads are contiguous along one axis, the result along the other."""
    x = torch.ones(257, 256).to(dtype)
    words = text(lambda x: (x[1:] * x[:-1]).t().contiguous(), x, comment="y = (x[1:] * x[:-1]).t()")
    assert "transpose_tile16(" in words
    assert "clone_block" in words
    assert "store_strided" not in words


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int8])
def test_short_rows_with_one_element_each_are_whole_vectors(dtype: torch.dtype) -> None:
    x, index = torch.ones(1000, 1).to(dtype), torch.zeros(1000, 1).long()

    def unpooled(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1000, 3, dtype=x.dtype).scatter(1, i, x).view(10, 300)

    words = text(unpooled, x, index, comment="y = F.max_unpool1d(x, i, 3)")
    assert "store_interleaved" in words
    assert "store_strided" not in words
    read = text(lambda x, i: unpooled(x, i) + 1, x, index, comment="y = F.max_unpool1d(x) + 1")
    assert read.count("// write") <= 1
    assert "store_interleaved" not in read, "part of the loop that reads it"

    def longer(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1000, 7, dtype=x.dtype).scatter(1, i, x)

    words = text(longer, x, index, comment="y = zeros.scatter(1, i, x)")
    assert "store_strided" not in words
    assert "checked(" in words, "a fill, and an element in each row"


@pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.float64])
def test_elements_that_interleave_are_stored_as_whole_vectors(dtype: torch.dtype) -> None:
    x = torch.ones(40, 1000).to(dtype)
    words = text(lambda x: x.repeat_interleave(2, -1), x, comment="y = x.repeat_interleave(2, -1)")
    assert "store_interleaved" in words
    assert "store_strided" not in words


def test_vectors_of_many_lanes_interleave_more_often() -> None:
    def stacked(count: int, dtype: torch.dtype) -> bool:
        given = [torch.full((1000,), k).to(dtype) for k in range(count)]
        words = text(lambda *x: torch.stack(x, -1), *given, comment="y = torch.stack(x, -1)")
        assert ("store_strided" in words) != ("store_interleaved" in words)
        return "store_interleaved" in words

    assert [stacked(count, torch.float64) for count in (4, 5)] == [True, False]
    assert [stacked(count, torch.float32) for count in (5, 8, 9)] == [True, True, False]
    assert [stacked(count, torch.int8) for count in (5, 8, 9)] == [True, True, False]


def test_many_pieces_of_a_concatenation_are_copied_one_after_the_other() -> None:
    def loops(count: int, size: int, *, shared: bool = False) -> int:
        x = torch.randn(32, size)
        given = [x] * count if shared else [x + k for k in range(count)]
        return text(
            lambda *x: torch.cat([y * k for k, y in enumerate(x)], 1), *given, comment="y = cat(x)"
        ).count("const auto step")

    assert loops(10, 512) == 10
    assert loops(3, 512) == 1, "a core follows six streams"
    assert loops(10, 100) == 1, "rows that are not worth a loop"


def test_elements_with_gaps_between_them_are_stored_one_by_one() -> None:
    def two_of_three(x: torch.Tensor, wide: torch.Tensor) -> torch.Tensor:
        wide[:, 0] = x
        wide[:, 1] = -x
        return wide

    words = text(two_of_three, torch.randn(1000), torch.empty(1000, 3), comment="wide[:, 0] = x")
    assert "store_interleaved" not in words


def test_only_memory_of_one_name_is_promised_not_to_overlap() -> None:
    """`__restrict` on two names of one memory lets the compiler reorder their loads and stores."""
    (program,) = programs(lambda x, y: x * y, torch.randn(64), torch.randn(64))
    (nest,) = (step for step in program.steps if isinstance(step, Nest))
    read, other, written = *nest.reads(), *nest.writes()
    made = emit(nest, buffer_dtypes(program), Vocabulary(AVX512), shared=(read, written))
    (declared,) = (line for line in made.body.splitlines() if "__restrict" in line)
    assert declared.endswith(f"pointers[{made.pointers.index(other)}];")


def test_scatters_do_not_walk_along_planes_that_evict_each_other() -> None:
    def added(x: torch.Tensor, v: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        v = ((v * 2 + 1) * v - 3) * v
        return torch.ops.aten.index_put(x, [None, i[:, None], i], v, True)

    def strided(side: int) -> bool:
        x, v = torch.zeros(32, side, side), torch.randn(32, 40, 40)
        return "store_strided" in text(added, x, v, torch.zeros(40).long(), comment="y")

    # planes of 64 x 64 float32 are pages apart, so that a vector's elements share a cache set
    assert (strided(64), strided(33)) == (False, True)


def test_short_rows_that_are_gathered_from_others_are_read_in_order() -> None:
    """A vector of strided elements, of each of which an index says where it is, is taken apart."""

    def gathered(columns: int) -> str:
        x, index = torch.randn(5000, 18), torch.zeros(5000, columns).long()
        return text(lambda x, i: x.gather(1, i), x, index, comment="y = x.gather(1, i)")

    assert "gather8(" not in gathered(3)
    assert "store_strided" not in gathered(3)
    assert "gather8(" in gathered(64)


def test_indices_of_elements_that_no_instruction_gathers_stay_in_memory() -> None:
    index = torch.arange(64).repeat(64, 1)
    picks = (
        lambda x, i: x[:, i[0]],
        lambda x, i: x.index_select(1, i[0]),
        lambda x, i: x.gather(0, i),
        lambda x, i: torch.ops.aten._unsafe_index(x, [None, i[0]]),
    )
    for dtype, isa in (
        (torch.int8, AVX512),
        (torch.bfloat16, AVX512),
        (torch.float32, AVX2),
        (torch.float32, replace(AVX512, gathers=False)),
    ):
        for pick in picks:
            words = text(pick, torch.ones(64, 64).to(dtype), index, comment="y = x[i]", isa=isa)
            assert re.search(r"gather\d\(\w+( \+ column)?, places", words), (dtype, words)
    words = text(picks[0], torch.ones(64, 64), index, comment="y = x[i]")
    assert "places" not in words, "AVX-512 gathers four bytes"
    words = text(
        lambda x, i: x[:, i[0] * 2 % 64], torch.ones(64, 64).bfloat16(), index, comment="y"
    )
    assert "places" not in words, "computed, in a vector"


def test_equal_nests_stand_once() -> None:
    (program,) = programs(lambda x: x.softmax(-1), torch.randn(64, 100))
    (nest,) = (step for step in program.steps if isinstance(step, Nest))
    (other,) = programs(lambda longer: longer.clone().softmax(-1), torch.randn(64, 100))
    (same,) = (step for step in other.steps if isinstance(step, Nest))
    vocabulary = Vocabulary(AVX512)
    functions = [
        (replace(step, name=name), emit(step, buffer_dtypes(owner), vocabulary, {"amax": name}))
        for step, owner, name in ((nest, program, "one"), (same, other, "two"))
    ]
    made = assemble(functions, vocabulary)
    assert made.kernels["one"][0] == made.kernels["two"][0]
    assert made.code.count("static void") <= 2
    name, function = made.kernels["two"]
    first = made.first_lines[name]
    start = function.named(name).splitlines()[0]
    assert made.code.splitlines()[first - 1] == start


def test_a_function_says_where_its_loops_and_parts_are() -> None:
    (program,) = programs(lambda x: (x.relu(), x.relu().sum(0)), torch.randn(200, 300))
    parts = 0
    for step in program.steps:
        assert isinstance(step, Nest)
        function = emit(step, buffer_dtypes(program), Vocabulary(AVX512))
        rows = function.body.splitlines()
        assert all(rows[line - 1].lstrip().startswith("for (") for line in function.loops)
        top = {place for place, row in enumerate(rows, 1) if row.startswith("    for (")}
        assert top
        assert top <= set(function.loops)
        for number, part in enumerate(function.parts):
            assert f"@_{number}" in rows[part.call - 1]
            assert part.loop in function.loops
        parts += len(function.parts)
    assert parts > 1


def test_a_users_line_stays_a_comment() -> None:
    line = "y = x * 2  \\\n#include <evil>\r??/"
    body = text(lambda x: x * 2, torch.randn(8), comment=line)
    lines = [row for row in body.splitlines() if "evil" in row]
    assert lines
    assert all(row.strip().startswith("//") for row in lines)
    assert all("\\" not in row and "??/" not in row for row in lines)


def test_an_at_sign_of_the_user_stays_one() -> None:
    (program,) = programs(lambda x: (x * 2).relu(), torch.randn(4096, 40))
    (nest,) = (step for step in program.steps if isinstance(step, Nest))
    line = "y = (x @ w * 2).relu()  # me@here"
    comments = dict.fromkeys(nest.origins(), line)
    vocabulary = Vocabulary(AVX512)
    labelled = replace(nest, label="a @ b")
    function = emit(labelled, buffer_dtypes(program), vocabulary, comments)
    made = assemble([(labelled, function)], vocabulary)
    ((name, _),) = made.kernels.values()
    assert f"//   {line}" in made.code
    assert "// a @ b: " in made.code
    code = "".join(row.split("//")[0] for row in made.code.splitlines())
    assert "@" not in code
    assert f"static void {name}(" in code


def test_erf_that_is_added_to_one_takes_half_the_instructions() -> None:
    x = torch.randn(4096)
    assert "erf_quick(" in text(F.gelu, x, comment="y = gelu(x)")
    assert "erf_quick(" in text(lambda x: (torch.erf(x) + 1) * 0.5, x, comment="y = cdf(x)")
    assert "erf(" in text(lambda x: torch.erf(x) + 2, x, comment="y = erf(x) + 2")
    both = text(lambda x: (torch.erf(x) + 1, torch.erf(x)), x, comment="y, z = …")
    assert "erf(" in both
    assert "erf_quick(" not in both
    summed = text(lambda x: (torch.erf(x).sum(), 1 + torch.erf(x)), x, comment="y, z = …")
    assert "erf_quick(" not in summed


def test_exp_beside_one_and_of_what_is_below_a_maximum() -> None:
    x = torch.empty(64, 96)
    assert "exp_quick(" in text(F.silu, x, comment="y = silu(x)")
    kept = text(lambda x: (x.exp() + 1, x.exp()), x, comment="y = x.exp()")
    assert "exp(" in kept
    assert "exp_quick(" not in kept
    below = text(lambda x: (x - x.amax(-1, keepdim=True)).exp(), x, comment="y = exp(x - max)")
    assert "exp_nonpositive(" in below
    above = text(lambda x: (x - x.amin(-1, keepdim=True)).exp(), x, comment="y = exp(x - min)")
    of_another = text(lambda x: (x - x[:1].amax(-1, keepdim=True)).exp(), x, comment="")
    assert "exp_nonpositive(" not in above + of_another


def test_a_scan_waits_for_one_scalar_operation_per_vector() -> None:
    body = text(lambda x: x.cumsum(1), torch.rand(64, 256), comment="y = x.cumsum(1)")
    assert "cumsum_carry = cumsum_carry + ((cumsum_part)[7]);" in body, body
    assert "scan_sum(to_f64(load8(arg_row + column)));" in body, body


@pytest.mark.parametrize(
    ("isa", "dtype", "instruction"),
    [
        (AVX512, torch.float32, "gatherdiv16sf"),
        (AVX512, torch.int64, "gatherdiv8df"),
        (AVX512, torch.bfloat16, ""),
        (AVX2, torch.float32, ""),
    ],
)
def test_a_gather_is_one_instruction(isa: Isa, dtype: torch.dtype, instruction: str) -> None:
    (program,) = programs(lambda x, i: x.take(i) + 1, torch.ones(99, dtype=dtype), torch.arange(99))
    (nest,) = (step for step in program.steps if isinstance(step, Nest))
    vocabulary = Vocabulary(isa)
    made = assemble([(nest, emit(nest, buffer_dtypes(program), vocabulary))], vocabulary)
    found = set(re.findall(r"__builtin_ia32_(gather\w+)", made.code))
    assert found == ({instruction} if instruction else set())


@pytest.mark.parametrize("isa", [AVX2, PORTABLE])
def test_few_lanes_scan_along_memory_too(isa: Isa) -> None:
    """Two or four lanes combine in one or two steps; rows on the lanes would lie far apart."""
    body = text(lambda x: x.cumsum(1), torch.rand(4096, 1000), comment="y = f(x)", isa=isa)
    assert "scan_sum(" in body, body
    assert "store_strided" not in body, body


def test_a_chunk_of_columns_returns_to_lines_that_are_still_in_the_cache() -> None:
    """A written line takes 16 steps along the scan, and 32 lines fit in their sets of L1; blocks of
    rows this long fit in no near cache."""
    x = torch.rand(16640, 256).t()
    body = text(lambda x: x.cumsum(1).contiguous(), x, comment="y = x.cumsum(1).contiguous()")
    assert "chunk * 32;" in body, body
    assert "store_strided(" in body, body


def test_a_product_has_few_chains() -> None:
    """Each of them may underflow by itself, step by step."""
    x = torch.rand(1 << 20)
    for factors, blocks in ((x, 4), (x[: 1 << 19], 2), (x.repeat(4), 8), (x.long(), 8)):
        body = text(lambda x: x.prod(), factors, comment="y = x.prod()")
        assert f"{blocks}, true);" in body, body
        chains = 2 if factors.is_floating_point() else 4
        assert (f"prod_part_{chains - 1} =" in body, f"prod_part_{chains} =" in body) == (1, 0)
    assert "64, true);" in text(lambda x: x.sum(), x, comment="y = x.sum()")


def test_rows_that_only_ride_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written for each row, so that threads have no lines to divide."""
    table = decompositions(training=False)
    monkeypatch.setattr("tests.cpu.codegen.nests.decompositions", lambda *_, **__: table)
    x = torch.randn(1000, 512)
    body = text(lambda x: x.t().log_softmax(-1).exp().sum(-1), x, comment="y = …")
    assert "unit / 1000" not in body
    assert "log_softmax_part_row[512]" in body  # the logarithms, once for all rows


@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=lambda isa: isa.name)
def test_positions_are_on_the_lanes_where_classes_are_far_apart(isa) -> None:
    # four positions, because of int64, take less time than eight classes loaded one by one
    scores, wanted = torch.randn(26, 39, 1014), torch.zeros(26, 1014, dtype=torch.int64)
    body = text(F.cross_entropy, scores, wanted, comment="cross_entropy(x, t)", isa=isa)
    assert "const float* arg_j = arg_i + j;" not in body
    assert not re.search(r"load_strided\d+\(arg_", body)
