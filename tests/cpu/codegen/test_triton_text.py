"""What the generated Triton looks like: goldens that a person can read."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.codegen.triton.kernel import TritonKernel
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.nest_kernels import emit
from tcw.compiler.codegen.triton.together import launches
from tcw.compiler.codegen.triton.triton_unit import host_body, named, unit
from tcw.compiler.codegen.unit import buffer_dtypes
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.loops.nest import Nest
from tcw.compiler.memory.plan import Segment
from tcw.compiler.memory.planner import plan
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.runtime.assemble import assemble
from tcw.compiler.runtime.libraries import without_comments
from tests.cpu.codegen.nests import programs

F32 = torch.float32


def kernels(fn, *inputs: torch.Tensor, comment: str = "y = f(x)", dynamic: bool = False):
    (program,) = programs(fn, *inputs, dynamic=dynamic, machine=GPU)
    nests = [step for step in program.steps if isinstance(step, Nest)]
    origins = {origin: f"model.py:12  {comment}" for nest in nests for origin in nest.origins()}
    limits = Limits(ARCHITECTURES["sm_90"], program.graph.hints)
    dtypes = buffer_dtypes(program)
    return [k for nest in nests for k in emit(nest, dtypes, limits, origins).kernels]


def text(found: list[TritonKernel]) -> str:
    """The kernels, with what a launch takes."""
    parts = []
    for number, kernel in enumerate(found):
        grid = " * ".join(f"{size} / {block}" for size, block in kernel.grid)
        parts.append(f"# programs: {grid}; warps: {kernel.warps}\n")
        parts.append(named(kernel, f"kernel_{number}") + "\n")
    return "".join(parts)


def test_softmax(golden) -> None:
    x = torch.randn(4096, 1000)
    golden("codegen/triton/softmax.py.txt", text(kernels(lambda x: x.softmax(-1), x)))


def test_long_softmax(golden) -> None:
    x = torch.randn(64, 40000, dtype=torch.bfloat16)
    golden("codegen/triton/long_softmax.py.txt", text(kernels(lambda x: x.softmax(-1), x)))


def test_layer_norm(golden) -> None:
    x, w = torch.randn(2048, 1024), torch.randn(1024)
    words = text(kernels(lambda x, w: F.layer_norm(x, (1024,), w, w), x, w))
    golden("codegen/triton/layer_norm.py.txt", words)


def test_column_sum(golden) -> None:
    x = torch.randn(8192, 256)
    golden("codegen/triton/column_sum.py.txt", text(kernels(lambda x: (x * 2).sum(0), x)))


def test_rows_with_sums_over_them(golden) -> None:
    x = torch.randn(4096, 256)
    words = text(
        kernels(lambda x, y: (x * (x * y).sum(-1, keepdim=True), (x * y).sum(0)), x, x.clone())
    )
    golden("codegen/triton/riding.py.txt", words)


def test_transposed_add(golden) -> None:
    x = torch.randn(1024, 1024)
    golden("codegen/triton/transposed_add.py.txt", text(kernels(lambda x: x + x.t(), x)))


def test_sizes_that_are_symbols(golden) -> None:
    x = torch.randn(30, 70)
    words = text(kernels(lambda x: x.softmax(-1).sum(0), x, dynamic=True))
    golden("codegen/triton/dynamic.py.txt", words)


def test_batch_norm(golden) -> None:
    x = torch.randn(8192, 64)
    words = text(kernels(lambda x: F.batch_norm(x, None, None, training=True).relu(), x))
    golden("codegen/triton/batch_norm.py.txt", words)


def test_small_kernels_share_a_launch(golden) -> None:
    x, y = torch.randn(64, 1000), torch.randn(32, 1024)
    (program,) = programs(lambda x, y: (x.sin(), y.sin()), x, y, machine=GPU)
    made = unit(None, program, Limits(ARCHITECTURES["sm_90"], {}))
    assert made.device is not None
    assert len(made.device.kernels) == 1
    golden("codegen/triton/together.py.txt", made.device.text)


def test_a_shared_launch_has_the_programs_of_its_kernels() -> None:
    """Of tiles that are transposed, too, which programs share along both dimensions."""
    x, y = torch.empty(64, 512), torch.empty(128, 384)
    (program,) = programs(lambda x, y: (x.t().contiguous(), y.t().contiguous()), x, y, machine=GPU)
    made = unit(None, program, Limits(ARCHITECTURES["sm_90"], {}))
    (launched,) = re.findall(r"launch\(device_kernels\[0\], (.*), arguments, error\);", made.code)
    assert launched == str((64 * 512 + 128 * 384) // (64 * 64))


def test_a_shared_launch_has_the_most_warps_of_its_kernels() -> None:
    """Rows of 1,024 elements take one warp by themselves, longer ones four; 16 elements would
    leave most of four warps idle."""

    def norms(*x: torch.Tensor) -> list[torch.Tensor]:
        return [F.rms_norm(t, (t.shape[-1],)) for t in x]

    def launched(*widths: int) -> list[int]:
        (program,) = programs(norms, *(torch.empty(512, width) for width in widths), machine=GPU)
        made = unit(None, program, Limits(ARCHITECTURES["sm_90"], {}))
        assert made.device is not None
        return [kernel.warps for kernel in made.device.kernels]

    assert launched(1024) == [1]
    assert launched(1088) == [4]
    assert launched(1024, 1088) == [4]
    assert launched(1088, 1024) == [4]
    assert launched(16, 1088) == [1, 4]


def test_a_long_row_is_scanned_by_few_warps() -> None:
    def tile(rows: int, length: int) -> str:
        (kernel,) = kernels(lambda x: x.cumsum(1), torch.empty(rows, length))
        return kernel.tile.words

    assert tile(8192, 1024) == "2x1024-4warps"
    assert tile(8192, 8192) == "1x8192-4warps"
    assert tile(4096, 16384) == "1x16384-16warps"


def hints(fn, *inputs: torch.Tensor) -> list[list[str]]:
    """Of each kernel: what it tells L2 about each load."""
    found = [
        re.findall(r"tl\.load\(.*?\)(?=\.|$)", k.body, re.MULTILINE) for k in kernels(fn, *inputs)
    ]
    return [
        [(re.findall(r'eviction_policy="evict_(\w+)"', load) or [""])[0] for load in loads]
        for loads in found
    ]


def test_a_long_row_stays_in_l2_until_its_last_pass() -> None:
    assert hints(lambda x: x.softmax(-1), torch.empty(2048, 65536)) == [["last", "first"]]
    assert hints(lambda x: x.softmax(-1), torch.empty(512, 1024)) == [[""]]


def test_what_is_written_does_not_push_out_rows_that_are_read_again() -> None:
    def stores(rows: int) -> list[bool]:
        x = torch.empty(rows, 65536, dtype=torch.bfloat16)
        (kernel,) = kernels(lambda x: x.softmax(-1), x)
        return ["evict_first" in t for t in kernel.body.splitlines() if "tl.store(" in t]

    assert stores(2048) == [True]
    assert stores(300) == [False], "L2 holds it"


def test_what_is_read_for_the_last_time_leaves_l2_first() -> None:
    """A part of L2, by a kernel that writes as much."""

    def softmax(x: torch.Tensor) -> torch.Tensor:
        return x.softmax(-1)

    assert hints(softmax, torch.empty(8192, 1024, dtype=torch.bfloat16)) == [["first"]]
    assert hints(softmax, torch.empty(512, 1024)) == [[""]], "too little to matter"
    assert hints(softmax, torch.empty(16384, 1024)) == [[""]], "measured: slower"

    def text(fn) -> str:
        (program,) = programs(fn, torch.empty(4096, 1024), machine=GPU)
        device = unit(None, program, Limits(ARCHITECTURES["sm_90"], {})).device
        assert device is not None
        return device.text

    assert "evict_first" in text(softmax)
    assert "evict_first" not in text(lambda x: (x.softmax(-1), x @ x.t())), "read again"


def test_what_a_reduction_reads_once_is_not_kept() -> None:
    def total(x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)

    assert hints(total, torch.empty(8192, 8192, dtype=torch.bfloat16)) == [["first"]]
    small, huge = torch.empty(1024, 8192), torch.empty(1 << 16, 8192, device="meta")
    assert hints(total, small) == [[""]], "L2 holds it"
    assert hints(total, huge) == [[""]], "measured: slower"
    assert hints(lambda x: x.sum(-1, keepdim=True) + x, small.expand(4, -1, -1)) == [[""]]


@pytest.mark.parametrize(
    ("dtype", "width"), [(torch.float32, 4), (torch.bfloat16, 8)], ids=["float32", "bfloat16"]
)
def test_lanes_that_read_the_same_element_share_a_load(dtype: torch.dtype, width: int) -> None:
    """A group norm's parameters are those of a channel, for all elements of its image."""

    def norm(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        rows = x.view(256, 2, -1)
        variance, mean = torch.var_mean(rows, 2, keepdim=True)
        whole = ((rows - mean) * variance.rsqrt()).view(x.shape)
        return whole * scale[:, None, None]

    def loads(side: int) -> list[str]:
        x, scale = torch.empty(256, 6, side, side), torch.empty(6)
        (kernel,) = kernels(norm, x.to(dtype), scale.to(dtype))
        lines = [line for line in kernel.body.splitlines() if "tl.load(" in line]
        assert len(lines) == 3, "twice the rows, and the scale"
        return [line for line in lines if "rrun" in line]

    (load,) = loads(96)
    assert f", {width}])" in load
    assert loads(97) == [], "runs of an odd length"


def test_long_rows_take_steps_with_few_idle_lanes() -> None:
    def moments(length: int, dtype: torch.dtype) -> tuple[int, int]:
        (kernel,) = kernels(
            lambda x: x * x.var(1, keepdim=True),
            torch.empty(1024, length, dtype=dtype),
        )
        return kernel.tile.r_block, kernel.tile.warps

    assert moments(65536, torch.bfloat16) == (8192, 16)
    assert moments(25088, torch.bfloat16) == (4096, 8)
    assert moments(65536, F32) == (16384, 32), "one program a processor: its rows stay in L2"
    assert moments(25088, F32) == (4096, 16)


def test_what_another_kernel_reads_too_is_not_dropped() -> None:
    """A group norm's images are read by two nests."""
    x, w = torch.empty(16, 512, 64, 64), torch.ones(512)
    (program,) = programs(lambda x, w: F.group_norm(x, 32, w, w), x, w, machine=GPU)
    made = unit(None, program, Limits(ARCHITECTURES["sm_90"], {})).device
    assert made is not None
    assert len(made.kernels) == 2
    assert "evict_first" not in made.text


def test_transposed_tiles_are_larger_where_there_are_many() -> None:
    def tiles(dtype: torch.dtype, side: int) -> list[str]:
        x = torch.empty(side, side, dtype=dtype)
        return [kernel.tile.words for kernel in kernels(lambda x: x + x.t(), x)]

    assert tiles(torch.bfloat16, 8192) == ["128x128-16warps"]
    assert tiles(torch.bfloat16, 1024) == tiles(torch.float32, 8192) == ["64x64-8warps"]


def test_parts_of_rows_have_one_length() -> None:
    x = torch.empty(65536, 512, dtype=torch.bfloat16)
    first, _ = kernels(lambda x: x.sum(0), x)
    assert "rmask" not in first.body


def test_dependent_kernels_do_not_share_a_launch() -> None:
    x = torch.randn(64, 1000)
    (program,) = programs(lambda x: (x.sin(), x.sin().sum(0)), x, machine=GPU)
    limits = Limits(ARCHITECTURES["sm_90"], {})
    made = {s.name: emit(s, buffer_dtypes(program), limits) for s in program.steps}
    for group in launches(program, made, None, limits):
        written = [buffer for nest in group for buffer in nest.writes()]
        read = {buffer for nest in group for buffer in nest.reads()}
        assert len(group) == 1 or not read & set(written)


def test_only_kernels_of_one_segment_share_a_launch() -> None:
    x, w = torch.randn(64, 64), torch.randn(64, 64)
    (program,) = programs(
        lambda x, w: (x.sin(), (x @ w).cos(), (x @ w @ w).exp().t() + 1, w * 2), x, w, machine=GPU
    )
    planned = plan(program)
    limits = Limits(ARCHITECTURES["sm_90"], {})
    nests = [step for step in program.steps if isinstance(step, Nest)]
    made = {nest.name: emit(nest, buffer_dtypes(program), limits) for nest in nests}
    runs = [step.run for step in planned.steps if isinstance(step.run, Segment)]
    home = {nest.name: run.name for run in runs for nest in run.nests}
    groups = launches(program, made, planned, limits)
    assert sorted(nest.name for group in groups for nest in group) == sorted(home)
    assert all(len({home[nest.name] for nest in group}) == 1 for group in groups)


def test_tiles_are_decisions() -> None:
    (program,) = programs(lambda x: x.softmax(-1), torch.randn(4096, 1000), machine=GPU)
    limits = Limits(ARCHITECTURES["sm_90"], {})
    asked: list[Decision] = []

    def ask(decision: Decision) -> str:
        asked.append(decision)
        return decision.choices[-1]

    usual = unit(None, program, limits)
    other = unit(None, program, limits, ask=ask)
    (decision,) = asked
    assert decision.kind == "tile"
    assert decision.numbers["programs"] == 2048
    assert decision.numbers["bytes_in_flight"] > 0
    assert usual.device is not None
    assert other.device is not None
    assert other.device.text != usual.device.text
    assert unit(None, program, limits, ask=lambda one: one.default).device == usual.device


def test_the_fastest_tile_is_taken_if_it_is_clearly_faster() -> None:
    (program,) = programs(lambda x: x.softmax(-1), torch.randn(4096, 1000), machine=GPU)
    limits = Limits(ARCHITECTURES["sm_90"], {})
    usual = unit(None, program, limits).device
    for gain, same in ((0.5, False), (0.99, True)):

        def measure(found, workspace, gain: float = gain) -> list[float | None]:
            return [100.0, *(100.0 for _ in found[2:]), 100.0 * gain]

        tuned = unit(None, program, limits, measure=measure).device
        assert (tuned == usual) is same

    def unknown(found, workspace) -> list[float | None]:
        return [None for _ in found]

    assert unit(None, program, limits, measure=unknown).device == usual


def test_the_host_launches_them(golden) -> None:
    (program,) = programs(lambda x: (x * 2).sum(0), torch.randn(8192, 256), machine=GPU)
    made = unit(None, program, Limits(ARCHITECTURES["sm_90"], {}))
    golden("codegen/triton/launch.cpp", made.code)


def test_units_that_launch_different_kernels_are_different_libraries() -> None:
    """A process loads equal libraries once: one table of kernels would serve both graphs."""

    def code(fn: Callable[[torch.Tensor], object]) -> str:
        (program,) = programs(fn, torch.randn(64, 64), machine=GPU)
        return without_comments(unit(None, program, Limits(ARCHITECTURES["sm_90"], {})).code)

    twice = code(lambda x: x * 2)
    assert code(lambda x: x * 3) != twice
    assert code(lambda x: x * 2.0) == twice


def test_the_hosts_unit_is_built_without_a_search_for_vectors() -> None:
    (program,) = programs(lambda x: (x * 2).sum(0), torch.randn(8192, 256), machine=GPU)
    made = unit(None, program, Limits(ARCHITECTURES["sm_90"], {}))
    flags = assemble(plan(program), program, made, device=0, arch="sm_90").flags
    assert "-Og" in flags
    assert not any(flag.startswith(("-O1", "-march", "-ftree")) for flag in flags)


def test_alternating_softmaxes_are_a_kernel_each() -> None:
    """The greatest of the columns rode with the softmax of the rows: a third kernel finished it."""

    def run(x: torch.Tensor) -> torch.Tensor:
        for number in range(4):
            x = x.softmax(number % 2)
        return x

    (program,) = programs(run, torch.randn(64, 64), machine=GPU)
    limits = Limits(ARCHITECTURES["sm_90"], {})
    dtypes = buffer_dtypes(program)
    made = [emit(step, dtypes, limits) for step in program.steps if isinstance(step, Nest)]
    assert [len(one.kernels) for one in made] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("dtype", "exact"), [(torch.float32, True), (torch.bfloat16, False)], ids=str
)
def test_only_what_16_bits_hide_is_approximate(dtype: torch.dtype, exact: bool) -> None:
    (kernel,) = kernels(lambda x: F.gelu(x) / (x.exp() + 1), torch.randn(512).to(dtype))
    assert ("libdevice.erf(" in kernel.body) is exact
    assert ("tl.div_rn(" in kernel.body) is exact
    assert ("erf_quick(" in kernel.body) is not exact


def test_what_a_comparison_sees_is_exact_in_16_bits_too() -> None:
    x = torch.randn(512).to(torch.bfloat16)
    (kernel,) = kernels(lambda x: torch.where(x.float().exp() / 3 > 1, x, -x), x)
    assert "libdevice.exp(" in kernel.body
    assert "tl.exp(" not in kernel.body


def test_hostile_lines_stay_comments() -> None:
    (kernel,) = kernels(
        lambda x: x + 1, torch.randn(8), comment="x = 1\nimport os\x1b[31m\u2028os.system('x')"
    )
    assert "import os" not in [line.strip() for line in kernel.body.splitlines()]
    assert "\x1b" not in kernel.body
    assert len(kernel.body.splitlines()) == len(kernel.body.split("\n")) - 1


def test_equal_texts_of_other_dtypes_are_other_kernels() -> None:
    one, two = (kernels(lambda x: x + x, torch.randn(64, dtype=d))[0] for d in (F32, torch.float64))
    assert one.body == two.body
    assert one.types != two.types
    assert one.key != two.key


def test_equal_nests_share_a_kernel() -> None:
    (program,) = programs(
        lambda x, y: (x.softmax(-1), y.softmax(-1)), torch.randn(64, 300), torch.randn(64, 300)
    )
    made = unit(None, program, Limits(ARCHITECTURES["sm_90"], {}))
    assert made.device is not None
    assert len(made.device.kernels) == 1
    assert made.code.count("launch(device_kernels[0]") == 1


def test_a_sum_is_stored_in_the_dtype_in_which_it_is_read() -> None:
    x = torch.randn(8192, 64, dtype=torch.bfloat16)
    found = kernels(lambda x: x.float().sum(0).to(torch.bfloat16), x)
    assert len(found) == 2
    assert found[-1].types[-1] == "*bf16"
    # both are wanted: the sum stays in float32
    both = kernels(lambda x: (x.float().sum(0), x.float().sum(0).to(torch.bfloat16)), x)
    assert {"*fp32", "*bf16"} <= {kind for kernel in both for kind in kernel.types}


def test_sums_of_several_sizes_are_one_kernel() -> None:
    """Their parts; what these left has other tiles."""
    (program,) = programs(
        lambda x, y, z: (x.sum(0), y.sum(0), z.sum(0)),
        torch.zeros(4096, 64),
        torch.zeros(3072, 128),
        torch.zeros(8192, 64),
        machine=GPU,
    )
    made = unit(None, program, Limits(ARCHITECTURES["sm_90"]))
    assert made.device is not None
    first = made.device.kernels[0]
    assert first.types == ("*fp32", "*fp32", "i32", "i32", "i32", "i32")
    assert first.divisible == ((2, 8), (3, 16), (4, 16), (5, 16))
    launched = re.findall(r"launch\w*\(device_kernels\[(\d+)\], (.*), arguments", made.code)
    grids = [grid for number, grid in launched if number == "0"]
    assert grids == ["1 * 32", "2 * 24", "1 * 64"]
    numbers = re.findall(r"const int (\w+) = (\d+);", made.code)
    rows = [value for name, value in numbers if name == "number_1"]
    assert rows == ["4096", "3072", "8192"]


def test_a_long_chain_in_the_loop_over_a_row() -> None:
    """Longer than Python may recurse."""

    def chain(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x
        for _ in range(500):
            y = torch.sin(y)
        return y.sum(-1), y.amax(-1)

    body = text(kernels(chain, torch.randn(8, 40000)))
    assert body.count("sin(") >= 500


def test_programs_of_dynamic_rows_and_columns() -> None:
    """As many as a tile for each block of both; more would lie beyond rows that need no mask."""
    (program,) = programs(
        lambda x: x.t().contiguous(), torch.randn(100, 70), dynamic=True, machine=GPU
    )
    (nest,) = program.steps
    assert isinstance(nest, Nest)
    limits = Limits(ARCHITECTURES["sm_90"], program.graph.hints)
    made = emit(nest, buffer_dtypes(program), limits, {})
    ((_, block), (_, other)) = made.kernels[0].grid
    text, _, symbols = host_body([nest], made, [0], ["transposed"])
    grid = text.partition("device_kernels[0], ")[2].partition(", arguments")[0]
    for rows, columns in ((block, other + 1), (5 * block + 1, 3 * other - 1), (1, 1)):
        sizes = dict(zip(symbols, (rows, columns), strict=True))
        wanted = -(-rows // block) * -(-columns // other)
        assert eval(grid.replace("/", "//"), sizes) == wanted
