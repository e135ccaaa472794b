"""Loads and stores: values, lanes beyond the count, and nothing touched beyond them."""

from __future__ import annotations

import ctypes
import mmap
from itertools import product

import pytest
import torch

from tcw.compiler.loops.dtypes import BYTES, compute_dtype
from tests.cpu.codegen.test_vocabulary_operators import fits
from tests.cpu.codegen.units import Unit, each_width
from tests.long import mostly_long

PAGE = mmap.PAGESIZE


class Guarded:
    """Two pages of which the second cannot be touched; `end(size)` is where `size` bytes end."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 2 * PAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        protect = libc.mprotect(ctypes.c_void_p(self.address + PAGE), ctypes.c_size_t(PAGE), 0)
        assert protect == 0

    def end(self, size: int) -> int:
        return self.address + PAGE - size


def filled(dtype: str, count: int) -> torch.Tensor:
    values = torch.arange(1, count + 1)
    return (values % 2 == 1) if dtype == "bool" else values.to(getattr(torch, dtype))


@each_width
def test_partial_loads_and_stores_touch_nothing_beyond(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    for dtype in BYTES:
        if not fits(dtype, isa, lanes):
            continue
        kind, register = code.storage(dtype), code.type(dtype)
        load = code.load_partial(dtype, f"({kind}*)p[0]", "n")
        first = f"{register} v = {load}; {code.store(dtype, f'({kind}*)p[1]', 'v')}"
        whole = code.load(dtype, f"({kind}*)p[0]")
        second = code.store_partial(dtype, f"({kind}*)p[1]", "v", "n")
        numbers[dtype] = (
            unit.kernel(first),
            unit.kernel(f"{register} v = {whole}; {second}"),
        )
    unit.build()
    guarded = Guarded()
    for dtype, (load_number, store_number) in numbers.items():
        size = BYTES[dtype]
        for count in range(lanes + 1):
            values = filled(dtype, max(count, 1))[:count]
            start = guarded.end(count * size)
            ctypes.memmove(start, values.data_ptr(), count * size)
            out = torch.ones(lanes, dtype=values.dtype)
            unit.call(load_number, [start, out.data_ptr()], count)
            assert torch.equal(out[:count], values), (dtype, count)
            assert (out[count:] == 0).all(), (dtype, count)
            ctypes.memset(start, 0, count * size)
            source = filled(dtype, lanes)
            unit.call(store_number, [source.data_ptr(), start], count)
            back = torch.empty(lanes, dtype=values.dtype)
            ctypes.memmove(back.data_ptr(), start, count * size)
            assert torch.equal(back[:count], source[:count]), (dtype, count)


@each_width
def test_gathered_by_places_in_memory(isa, lanes) -> None:
    unit, numbers = Unit(isa, lanes), {}
    for dtype in BYTES:
        if fits(dtype, isa, lanes):
            kind = unit.lanes.storage(dtype)
            given = unit.lanes.gather_places(dtype, f"(({kind}*)p[0])", "(long*)p[2]", "3", "-1")
            numbers[dtype] = unit.kernel(unit.lanes.store(dtype, f"(({kind}*)p[1])", given))
    unit.build()
    places = torch.randint(-5, 15, (lanes,), generator=torch.Generator().manual_seed(5))
    for dtype, number in numbers.items():
        values = filled(dtype, 128)
        out = torch.ones(lanes, dtype=values.dtype)
        unit.run(number, [values[60:], out, places], lanes)
        assert torch.equal(out, values[60 + places * 3 - torch.arange(lanes)]), dtype


@each_width
def test_strided_gathered_and_scattered(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    index = code.load("int64", "(long*)p[2]") if code.holds("int64") else None
    for dtype in BYTES:
        if not fits(dtype, isa, lanes):
            continue
        kind = code.storage(dtype)
        source, target = f"(({kind}*)p[0])", f"(({kind}*)p[1])"
        for count in (None, "n"):
            strided = code.load_strided(dtype, source, "-3", count)
            whole = code.load(dtype, source)
            loads = {"strided": unit.kernel(code.store(dtype, target, strided))}
            stores = {"strided": code.store_strided(dtype, target, whole, "-3", count)}
            if index is not None:
                gathered = code.gather(dtype, source, index, count)
                loads["gathered"] = unit.kernel(code.store(dtype, target, gathered))
                stores["gathered"] = code.scatter(dtype, target, index, whole, count)
            numbers[dtype, count] = (
                loads,
                {name: unit.kernel(text) for name, text in stores.items()},
            )
    unit.build()
    places = torch.randint(-10, 50, (lanes,), generator=torch.Generator().manual_seed(5))
    for (dtype, count), (loads, stores) in numbers.items():
        n = lanes if count is None else max(lanes - 1, 1)
        values = filled(dtype, 128)
        middle = values[60:]
        where = {"strided": -3 * torch.arange(n), "gathered": places[:n]}
        for name, number in loads.items():
            out = torch.ones(lanes, dtype=values.dtype)
            unit.run(number, [middle, out, places], n)
            assert torch.equal(out[:n], values[60 + where[name]]), (dtype, count)
            assert (out[n:] == 0).all(), (dtype, count)
        for name, number in stores.items():
            out, expected = (torch.zeros(128, dtype=values.dtype) for _ in range(2))
            for lane, place in enumerate(where[name].tolist()):
                expected[60 + place] = middle[lane]
            unit.run(number, [middle, out[60:], places], n)
            assert torch.equal(out, expected), (dtype, count)


@pytest.mark.parametrize("several", mostly_long((2, 3, 4, 5, 8), (3, 8)))
@each_width
def test_interleaved_stores_touch_nothing_around_them(isa, lanes, several) -> None:
    if lanes == 1:
        return
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    for dtype in BYTES:
        if not fits(dtype, isa, lanes):
            continue
        kind = f"({code.storage(dtype)}*)"
        values = [code.load(dtype, f"{kind}p[0] + {lanes * k}") for k in range(several)]
        for count in (None, "n"):
            store = code.store_interleaved(dtype, f"{kind}p[1]", values, count)
            numbers[dtype, count] = unit.kernel(store)
    unit.build()
    guarded = Guarded()
    for (dtype, how), number in numbers.items():
        values = filled(dtype, lanes * several)
        expected = values.view(several, lanes).t().reshape(-1)
        for count in [lanes] if how is None else range(lanes + 1):
            size = count * several * BYTES[dtype]
            start = guarded.end(size)
            ctypes.memset(start, 0, size)
            unit.call(number, [values.data_ptr(), start], count)
            back = torch.empty(count * several, dtype=values.dtype)
            ctypes.memmove(back.data_ptr(), start, size)
            assert torch.equal(back, expected[: count * several]), (dtype, count)


@pytest.mark.parametrize("step", mostly_long((-4, -2, -1, 2, 3, 4, 7, 8, 9), (-2, -1, 3, 8)))
@each_width
def test_loads_of_near_elements_touch_nothing_around_them(isa, lanes, step) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    for dtype in BYTES:
        if not fits(dtype, isa, lanes):
            continue
        kind, register = code.storage(dtype), code.type(dtype)
        for count in (None, "n"):
            load = code.load_strided(dtype, f"(({kind}*)p[0])", str(step), count)
            body = f"{register} v = {load}; {code.store(dtype, f'({kind}*)p[1]', 'v')}"
            numbers[dtype, count] = unit.kernel(body)
    unit.build()
    guarded = Guarded()
    for (dtype, how), number in numbers.items():
        for count in [lanes] if how is None else range(1, lanes + 1):
            span = (count - 1) * abs(step) + 1
            values = filled(dtype, span)
            for start in (guarded.address, guarded.end(span * BYTES[dtype])):
                ctypes.memmove(start, values.data_ptr(), span * BYTES[dtype])
                first = start + (span - 1 if step < 0 else 0) * BYTES[dtype]
                out = torch.ones(lanes, dtype=values.dtype)
                unit.call(number, [first, out.data_ptr()], count)
                expected = (values.flip(0) if step < 0 else values)[:: abs(step)]
                assert torch.equal(out[:count], expected), (dtype, count)
                assert (out[count:] == 0).all(), (dtype, count)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("step", mostly_long((1, 2, 3, 4, 0.5, 0.25), (2, 3, 0.5)))
@each_width
def test_loads_within_a_dimension_touch_nothing_beyond(isa, lanes, step, clamped) -> None:
    if lanes == 1:
        pytest.skip("one lane is a load or a number")
    places = tuple(int(k * step + (0.5 if step == 0.5 else 0)) for k in range(lanes))
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    for dtype in BYTES:
        if not fits(dtype, isa, lanes):
            continue
        kind, register = code.storage(dtype), code.type(dtype)
        size = "((long*)p[2])[0]"
        word = code.inside("n", size)
        row = f"(({kind}*)p[0])"
        if clamped:
            load = code.load_clamped(dtype, row, places, "n", word, size)
        else:
            load = code.load_within(dtype, f"{row} + n", places, word, 1)
        body = f"{register} v = {load}; {code.store(dtype, f'({kind}*)p[1]', 'v')}"
        numbers[dtype] = unit.kernel(body)
    unit.build()
    guarded = Guarded()
    for dtype, number in numbers.items():
        span = places[-1] + 1
        for size in (1, 2, lanes, span, span + 7):
            values = filled(dtype, size)
            for place in (guarded.address, guarded.end(size * BYTES[dtype])):
                ctypes.memmove(place, values.data_ptr(), size * BYTES[dtype])
                firsts = torch.arange(-span - 70, size + 70, 3)
                out = torch.zeros(len(firsts), lanes, dtype=values.dtype)
                sizes = torch.tensor([size])
                for first, row in zip(firsts.tolist(), out, strict=True):
                    unit.call(number, [place, row.data_ptr(), sizes.data_ptr()], first)
                at = firsts[:, None] + torch.tensor(places)
                inside = (at >= 0) & (at < size) | clamped
                other = torch.ones((), dtype=values.dtype)
                expected = torch.where(inside, values[at.clamp(0, size - 1)], other)
                assert torch.equal(out, expected), (dtype, size)


@each_width
def test_partial_tiles_read_nothing_beyond(isa, lanes) -> None:
    """Rows of any number of elements, some of them nearer each other than a vector is long, the
    last of which end where the memory does."""
    unit, numbers = Unit(isa, lanes), {}
    code = unit.lanes
    for dtype in ("float32", "int64", "int16", "uint8"):
        if lanes == 1 or not fits(dtype, isa, lanes):
            continue
        wide = compute_dtype(dtype)
        source, block = f"({code.storage(dtype)}*)p[0]", f"({code.storage(wide)}*)p[1]"
        for stride in (2, lanes - 2, lanes + 3):
            tile = code.transpose_edge(
                dtype, source, str(stride), block, "20", "n % 100", "n / 100"
            )
            numbers[dtype, stride] = unit.kernel(tile)
    if not numbers:
        return
    unit.build()
    guarded = Guarded()
    for (dtype, stride), number in numbers.items():
        for rows, columns in product(range(1, lanes + 1), range(1, lanes + 1)):
            count = (columns - 1) * stride + rows
            values = filled(dtype, count)
            start = guarded.end(count * BYTES[dtype])
            ctypes.memmove(start, values.data_ptr(), count * BYTES[dtype])
            block = torch.zeros(20, 20, dtype=getattr(torch, compute_dtype(dtype)))
            unit.call(number, [start, block.data_ptr()], columns * 100 + rows)
            expected = values.as_strided((columns, rows), (stride, 1)).t()
            assert torch.equal(block[:rows, :columns], expected), (dtype, stride, rows, columns)
