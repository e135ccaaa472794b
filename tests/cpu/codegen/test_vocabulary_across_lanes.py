"""Reductions, argmax, scans, transposes and lane selections within a register, against torch."""

from __future__ import annotations

import torch

from tcw.compiler.loops.dtypes import FLOATS, compute_dtype
from tests.cpu.codegen.test_vocabulary_operators import ALL, fits
from tests.cpu.codegen.units import Unit, each_width, same

REDUCTIONS = {
    "sum": torch.sum,
    "prod": torch.prod,
    "max": torch.amax,
    "min": torch.amin,
}


def samples(dtype: str, lanes: int) -> torch.Tensor:
    """Rows of `lanes` with ties, and with a NaN in each lane for floats."""
    generator = torch.Generator().manual_seed(7)
    kind = getattr(torch, dtype)
    low = 0 if dtype in ("uint8", "bool") else -3
    rows = torch.randint(low, 2 if dtype == "bool" else 4, (64, lanes), generator=generator).to(
        kind
    )
    if dtype in FLOATS:
        for lane in range(lanes):
            rows[lane, lane] = float("nan")
            rows[lane + 16, lane:] = float("nan")
        rows[40] = -float("inf")
        rows[41] = float("inf")
    return rows


@each_width
def test_reductions(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code, single = unit.lanes, unit.vocabulary.lanes(1)
    numbers = {}
    dtypes = [dtype for dtype in ALL if fits(dtype, isa, lanes)]
    for dtype in dtypes:
        ops = ("max", "min", "any", "all") if dtype == "bool" else tuple(REDUCTIONS)
        for op in ops:
            kind = code.storage(dtype)
            vector = code.load(dtype, f"({kind}*)p[0] + i * {lanes}")
            start = code.identity(op, dtype)
            body = (
                f"for (long i = 0; i < n; i++) {{ {code.type(dtype)} v = "
                f"{code.combine(op, start, vector, dtype)}; "
                f"{single.store(dtype, f'({kind}*)p[1] + i', code.reduce(op, 'v', dtype))} }}"
            )
            numbers[op, dtype] = unit.kernel(body)
    unit.build()
    for (op, dtype), number in numbers.items():
        rows = samples(dtype, lanes)
        out = torch.empty(64, dtype=rows.dtype)
        unit.run(number, [rows, out], 64)
        if op in ("any", "all"):
            expected = getattr(torch, op)(rows, dim=1)
        elif op in ("sum", "prod"):
            expected = REDUCTIONS[op](rows, dim=1, dtype=rows.dtype)
        else:
            expected = REDUCTIONS[op](rows, dim=1)
        assert same(out, expected).all(), (op, dtype, out, expected)


@each_width
def test_argmax_and_argmin(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    for dtype in ALL:
        if not fits(dtype, isa, lanes) or dtype == "bool":
            continue
        for op in ("argmax", "argmin"):
            kind, register, index = code.storage(dtype), code.type(dtype), code.index_dtype
            vector = code.load(dtype, f"({kind}*)p[0] + i + k")
            step = code.arg_update(op, "best", "place", vector, code.iota("k", index), dtype)
            start = code.identity(op[3:], dtype)
            body = (
                f"for (long i = 0; i < 64 * n; i += n) {{ {register} best = {start}; "
                f"{code.type(index)} place = {code.iota('0', index)}; "
                f"for (long k = 0; k < n; k += {lanes}) {step} "
                f"((long*)p[1])[i / n] = {code.arg_reduce(op, 'best', 'place', dtype)}; }}"
            )
            numbers[op, dtype] = unit.kernel(body)
    unit.build()
    for (op, dtype), number in numbers.items():
        rows = samples(dtype, 2 * lanes if lanes < 16 else lanes)
        out = torch.empty(64, dtype=torch.int64)
        unit.run(number, [rows, out], rows.shape[1])
        expected = getattr(torch, op)(rows, dim=1)
        assert torch.equal(out, expected), (op, dtype, rows[out != expected], out, expected)


@each_width
def test_scans_carry_on(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code, scalar = unit.lanes, unit.vocabulary.lanes(1)
    scans = {"sum": torch.cumsum, "prod": torch.cumprod, "max": torch.cummax, "min": torch.cummin}
    numbers = {}
    for dtype in ALL:
        if not fits(dtype, isa, lanes) or dtype == "bool":
            continue
        for op in scans:
            kind = code.storage(dtype)
            vector = code.load(dtype, f"({kind}*)p[0] + i")
            start, end = code.broadcast("carry", dtype), code.last("part", dtype)
            body = (
                f"{scalar.type(dtype)} carry = {scalar.identity(op, dtype)}; "
                f"for (long i = 0; i < n; i += {lanes}) {{ {code.type(dtype)} part = "
                f"{code.scan(op, vector, dtype)}; "
                f"{code.type(dtype)} v = {code.combine(op, start, 'part', dtype)}; "
                f"{code.store(dtype, f'({kind}*)p[1] + i', 'v')} "
                f"carry = {scalar.combine(op, 'carry', end, dtype)}; }}"
            )
            numbers[op, dtype] = unit.kernel(body)
    unit.build()
    for (op, dtype), number in numbers.items():
        values = samples(dtype, 16)[20:28].flatten()
        if op in ("sum", "prod"):
            values = torch.tensor([1, 2, 1, 1, 2, 1, 3, 1] * 8).to(values.dtype)
        out = torch.empty_like(values)
        unit.run(number, [values, out], values.numel())
        expected = scans[op](values, dim=0)
        expected = (expected.values if op in ("max", "min") else expected).to(out.dtype)
        assert same(out, expected).all(), (op, dtype, out, expected)


@each_width
def test_transposes(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    for dtype in ("float32", "float64", "int16", "uint8", "bool"):
        if not fits(dtype, isa, lanes):
            continue
        kind, register = code.storage(dtype), code.type(dtype)
        names = [f"a{k}" for k in range(lanes)]
        lines = [
            f"{register} {name} = {code.load(dtype, f'({kind}*)p[0] + {k * lanes}')};"
            for k, name in enumerate(names)
        ]
        lines.append(code.transpose(names, dtype))
        lines += [
            code.store(dtype, f"({kind}*)p[1] + {k * lanes}", name) for k, name in enumerate(names)
        ]
        numbers[dtype] = unit.kernel(" ".join(lines))
    unit.build()
    for dtype, number in numbers.items():
        square = torch.arange(lanes * lanes).reshape(lanes, lanes).to(getattr(torch, dtype))
        out = torch.empty_like(square)
        unit.run(number, [square, out], 0)
        assert torch.equal(out, square.t()), dtype


@each_width
def test_transposes_from_memory(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    for dtype in ("float32", "float64", "bfloat16", "int16", "uint8"):
        if lanes == 1 or not fits(dtype, isa, lanes):
            continue
        wide = compute_dtype(dtype)
        source = f"({code.storage(dtype)}*)p[0] + 1"
        whole, edge = (f"({code.storage(wide)}*)p[{place}]" for place in (1, 2))
        lines = [
            code.transpose_tile(dtype, source, "40", whole, "20"),
            code.transpose_edge(dtype, source, "40", edge, "20", "3", "2"),
        ]
        numbers[dtype] = unit.kernel(" ".join(lines))
    if not numbers:
        return
    unit.build()
    for dtype, number in numbers.items():
        source = torch.arange(40 * 20).remainder(200).reshape(20, 40).to(getattr(torch, dtype))
        wide = getattr(torch, compute_dtype(dtype))
        whole, edge = (torch.full((20, 20), 7, dtype=wide) for _ in range(2))
        expected, corner = whole.clone(), edge.clone()
        unit.run(number, [source, whole, edge], 0)
        expected[:lanes, :lanes] = source[:lanes, 1 : lanes + 1].t()
        assert torch.equal(whole, expected), dtype
        rows, columns = min(3, lanes), min(2, lanes)
        corner[:rows, :columns] = source[:columns, 1 : rows + 1].t()
        beside = edge[:lanes, :lanes].clone()  # its tile is written whole, with anything
        edge[:lanes, :lanes] = 7
        edge[:rows, :columns] = beside[:rows, :columns]
        assert torch.equal(edge, corner), dtype


@each_width
def test_selected_lanes_iota_and_constants(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    constants = {
        "float32": [0.1, -0.0, float("nan"), -float("inf"), 1e-45, 3.4028234663852886e38, 7],
        "float64": [0.1, -0.0, float("nan"), float("inf"), 5e-324, 1.7976931348623157e308, 2**53],
        "int64": [-(2**63), 2**63 - 1, -1],
        "int32": [-(2**31), 2**31 - 1, -1],
        "int16": [-(2**15), 2**15 - 1],
        "int8": [-128, 127],
        "uint8": [255, 0],
        "bool": [True, False],
        "bfloat16": [0.5, -2.0],
    }
    for dtype, values in constants.items():
        if not fits(dtype, isa, lanes):
            continue
        kind = code.storage(dtype)
        for value in values:
            store = code.store(dtype, f"({kind}*)p[0]", code.constant(value, dtype))
            numbers[dtype, value] = unit.kernel(store)
        other = code.constant(1, dtype)
        selected = code.select_lanes(code.constant(0, dtype), other, "n", dtype)
        numbers[dtype, "select"] = unit.kernel(code.store(dtype, f"({kind}*)p[0]", f"({selected})"))
    index = code.index_dtype
    place = f"({code.storage(index)}*)p[0]"
    iota = unit.kernel(code.store(index, place, code.iota("n", index)))
    unit.build()
    for (dtype, value), number in numbers.items():
        out = torch.ones(lanes, dtype=getattr(torch, dtype))
        if value == "select":
            unit.run(number, [out], lanes - 1)
            assert out.tolist() == [0] * (lanes - 1) + [1], dtype
            continue
        unit.run(number, [out], 0)
        expected = torch.full((lanes,), value, dtype=getattr(torch, dtype))
        assert same(out, expected).all(), (dtype, value, out)
        if out.is_floating_point() and value == 0:
            assert torch.equal(out.signbit(), expected.signbit())
    out = torch.empty(lanes, dtype=getattr(torch, index))
    unit.run(iota, [out], 5)
    assert out.tolist() == list(range(5, 5 + lanes))
