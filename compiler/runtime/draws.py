"""Draws: random numbers with eager's bits, from the library of `codegen/draws`.

A compiled graph calls `tcw.normal.default` and the like, one function a family, with the sizes,
strides and dtype of the result and the parameters of the distribution. Before a function makes
numbers of a dtype itself for the first time in a process, it compares some with ATen's, and the
state of the generator after them. If anything differs, or the library is not available, it always
calls ATen.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch

from tcw.compiler.codegen.draws.text import DTYPES, FAMILIES, draws_text
from tcw.compiler.codegen.launcher.segment import SCALAR_TYPES
from tcw.compiler.control.hooks import Missing
from tcw.compiler.loops.dtypes import BYTES, REDUCED
from tcw.compiler.loops.interpreter.draws import ATEN, FILLS
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.generator import address_of, generator_functions
from tcw.compiler.runtime.launcher import Launcher, launcher
from tcw.compiler.runtime.libraries import LibrarySource, library
from tcw.compiler.runtime.store import FileStore, usable_store
from tcw.compiler.runtime.toolchain import (
    NoCompiler,
    find_compiler,
    instruction_set,
    unit_flags,
    unit_libraries,
)

Sizes = Sequence[int]

SIXTEEN = 16
"""Below that many numbers, ATen makes normal ones pair by pair."""

TRIED = (16, 53, 2400)
"""How many numbers are compared with ATen's."""
TRIED_NARROW = (*TRIED, 1 << 16)
"""The same in 16 bits, where one number in 8,000 shows that another torch rounds elsewhere."""

WITHIN = 1e-14
"""The greatest difference between ours and ATen's in float64, relative to the larger of a number
and the distribution's location. What is narrower has the same bits."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """One function of the library, or several that share a name."""

    families: tuple[str, ...]
    """Its families of `FAMILIES`; the first of a dtype that makes ATen's numbers is used."""
    parameters: Callable[..., tuple[float, ...]]
    """What the library takes, from the dtype's name and what ATen takes."""
    location: Callable[..., float] = lambda *_: 0.0
    """About where the numbers lie, for the comparison of float64."""
    pairs: str = ""
    """Its family where ATen makes pair by pair what it otherwise makes by sixteens."""


def _ends(dtype: str, start: float, end: float) -> tuple[float, ...]:
    if BYTES[dtype] != 2:
        return start, end
    with torch.utils._python_dispatch._disable_current_modes():
        ends = torch.tensor([end, start], dtype=getattr(torch, dtype), device="cpu")
        span = ends[0] - ends[1]
        return start, end, *ends.view(torch.int16).tolist(), ends[1].item(), span.item()


def _moments(dtype: str, mean: float, deviation: float) -> tuple[float, ...]:
    if BYTES[dtype] != 2:
        return mean, deviation
    with torch.utils._python_dispatch._disable_current_modes():
        rounded = torch.tensor([mean, deviation], dtype=getattr(torch, dtype), device="cpu")
        return mean, deviation, *rounded.tolist()


_ROUNDED = {
    name: tuple(f"{name}_rounded_{dtype}" for dtype in REDUCED) for name in ("uniform", "normal")
}

DISTRIBUTIONS = {
    "uniform": Distribution(
        ("uniform", "uniform_single", *_ROUNDED["uniform"]), _ends, lambda start, end: start
    ),
    "normal": Distribution(
        ("normal", "normal_single", *_ROUNDED["normal"]),
        _moments,
        lambda mean, deviation: mean,
        "normal_pairs",
    ),
    "bernoulli": Distribution(
        ("bernoulli",), lambda dtype, p: (float(math.ceil(math.ldexp(p, 53))),)
    ),
    "exponential": Distribution(("exponential",), lambda dtype, rate: (-1.0 / rate,)),
    "geometric": Distribution(("geometric",), lambda dtype, p: (math.log1p(-p),)),
    "cauchy": Distribution(
        ("cauchy",), lambda dtype, median, sigma: (median, sigma), lambda median, sigma: median
    ),
    "log_normal": Distribution(("log_normal",), lambda dtype, mean, deviation: (mean, deviation)),
    "integers": Distribution(
        ("integers",), lambda dtype, low, high: (float(high - low), float(low))
    ),
}
"""By the name in `tcw.NAME.default`."""


class Draws:
    """The loaded library."""

    def __init__(self, handle: ctypes.CDLL, made: Launcher) -> None:
        self._draw = handle.draw_numbers
        self._draw.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
        self._draw.argtypes += [ctypes.c_long, ctypes.c_void_p]
        self._draw.restype = None
        self._slopes = handle.draw_slopes
        self._slopes.argtypes = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p]
        self._slopes.argtypes += [ctypes.c_long, ctypes.c_void_p]
        self._slopes.restype = None
        self._new = made.new_tensor
        self.default = address_of(torch.default_generator)

    def draw(
        self, generator: int, family: int, sizes: Sizes, strides: Sizes, dtype: str, a: Any
    ) -> torch.Tensor:
        """A new tensor of numbers, in memory order."""
        count = math.prod(sizes)
        made = self._tensor(count, sizes, strides, dtype)
        self._draw(generator, family, DTYPES.index(dtype), made.data_ptr(), count, a)
        return made

    def slopes(self, generator: int, x: torch.Tensor, dtype: str, a: Any) -> torch.Tensor:
        """A new tensor of slopes for the elements of `x`, which is row-major."""
        count = x.numel()
        made = self._tensor(count, x.shape, x.stride(), dtype)
        wide = dtype == "float64"
        self._slopes(generator, wide, x.data_ptr(), made.data_ptr(), count, a)
        return made

    def _tensor(self, count: int, sizes: Sizes, strides: Sizes, dtype: str) -> torch.Tensor:
        shape = (ctypes.c_long * (1 + 2 * len(sizes)))(count * BYTES[dtype], *sizes, *strides)
        made: torch.Tensor = self._new(SCALAR_TYPES[dtype], len(sizes), shape)
        return made


@cache
def draws() -> Draws | Missing:
    """The library of this process, built if the machine has not built it yet, or why not."""
    functions, found = generator_functions(), find_compiler()
    if isinstance(functions, Missing):
        return functions
    if isinstance(found, NoCompiler):
        return Missing(found.reason)
    if not instruction_set(found).fma:
        return Missing("ATen's numbers take multiplications that are fused into additions")
    store, _ = usable_store()
    try:
        made = launcher(found, store)
        if isinstance(made, Missing):
            return made
        handle = ctypes.CDLL(str(_built(found, store)))
        table = (ctypes.c_void_p * len(functions)).in_dll(handle, "torch_generator")
        table[:] = functions  # type: ignore[call-overload]
        return Draws(handle, made)
    except (BuildFailed, OSError) as error:
        return Missing(str(error))


def _built(compiler: Any, store: FileStore) -> Any:
    isa = instruction_set(compiler)
    unit = LibrarySource(draws_text(isa), unit_flags(isa), unit_libraries(()))
    return library(unit, compiler, store).path


def distribution(name: str) -> Callable[..., torch.Tensor]:
    """The function that a graph calls: `(sizes, strides, dtype, *parameters)` to a tensor. Raises
    KeyError if none has this name."""
    if name in _FOR_EACH:
        return _FOR_EACH[name]
    if name not in DISTRIBUTIONS:
        raise KeyError(name)

    def drawn(sizes: Sizes, strides: Sizes, dtype: str, *parameters: float) -> torch.Tensor:
        family = _family(name, dtype, _in_pairs(name, sizes, strides))
        if family >= 0 and not _is_traced():
            found = draws()
            assert isinstance(found, Draws)
            a = _array(name, dtype, parameters)
            return found.draw(found.default, family, sizes, strides, dtype, a)
        return ATEN[name](sizes, strides, dtype, *parameters)

    return drawn


def slopes(x: torch.Tensor, lower: float, upper: float) -> torch.Tensor:
    """The noise of `aten.rrelu_with_noise` for a row-major tensor of float32 or float64."""
    dtype = str(x.dtype).removeprefix("torch.")
    if not _is_traced() and _same_slopes(dtype):
        found = draws()
        assert isinstance(found, Draws)
        return found.slopes(found.default, x, dtype, _ends_of_slopes(dtype, lower, upper))
    return ATEN["slopes"](x, lower, upper)


def chances(p: torch.Tensor, sizes: Sizes, strides: Sizes, dtype: str) -> torch.Tensor:
    """Uniform numbers, to be compared with probabilities. Raises as ATen does if one is none."""
    if not _is_traced() and not _within(p, 1.0):
        torch.bernoulli(p)
    return distribution("uniform")(sizes, strides, dtype, 0.0, 1.0)


def deviations(std: torch.Tensor, sizes: Sizes, strides: Sizes, dtype: str) -> torch.Tensor:
    """Normal numbers, to be multiplied by deviations. Raises as ATen does if one is negative."""
    if not _is_traced() and not _within(std, math.inf):
        torch.normal(0.0, std)
    return distribution("normal")(sizes, strides, dtype, 0.0, 1.0)


def _within(numbers: torch.Tensor, greatest: float) -> bool:
    low, high = torch.aminmax(numbers.detach())
    return bool(low.item() >= 0.0 and high.item() <= greatest)


_FOR_EACH: dict[str, Callable[..., torch.Tensor]] = {
    "slopes": slopes,
    "chances": chances,
    "deviations": deviations,
}
"""Functions that take a tensor before the others."""


@lru_cache(maxsize=1 << 10)
def _ends_of_slopes(dtype: str, *ends: float) -> Any:
    if dtype == "float32":
        ends = struct.unpack("2f", struct.pack("2f", *ends))
    return (ctypes.c_double * 2)(*ends)


@cache
def _same_slopes(dtype: str) -> bool:
    """Whether ATen draws the same slopes."""
    found = draws()
    if isinstance(found, Missing) or dtype not in ("float32", "float64"):
        return False
    ours, atens = torch.Generator().manual_seed(11), torch.Generator().manual_seed(11)
    with torch.utils._python_dispatch._disable_current_modes(), torch.inference_mode(False):
        x = torch.sin(torch.arange(TRIED[-1], device="cpu", dtype=getattr(torch, dtype)))
        noise = torch.empty_like(x)
        rrelu = torch.ops.aten.rrelu_with_noise.default
        rrelu(x, noise, 1 / 8, 1 / 3, True, generator=atens)
        one = found.slopes(address_of(ours), x, dtype, _ends_of_slopes(dtype, 1 / 8, 1 / 3))
        states = ours.get_state(), atens.get_state()
        return bool(torch.equal(one, noise) and torch.equal(*states))


def _in_pairs(name: str, sizes: Sizes, strides: Sizes) -> bool:
    """Whether ATen makes the numbers pair by pair: few of them, or not in row-major order."""
    if not DISTRIBUTIONS[name].pairs:
        return False
    count = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != count:
            return True
        count *= size
    return count < SIXTEEN


def _is_traced() -> bool:
    """Whether a mode (of fake tensors, say) sees the operations of this thread."""
    return bool(torch._C._len_torch_dispatch_stack())


@lru_cache(maxsize=1 << 10)
def _array(name: str, dtype: str, parameters: tuple[float, ...]) -> Any:
    found = DISTRIBUTIONS[name].parameters(dtype, *parameters)
    return (ctypes.c_double * len(found))(*found)


_EXAMPLES: dict[str, tuple[float, ...]] = {
    "uniform": (-1.5, 2.0),
    "normal": (0.5, 1.25),
    "bernoulli": (0.3,),
    "exponential": (1.5,),
    "geometric": (0.3,),
    "cauchy": (0.5, 1.25),
    "log_normal": (0.5, 0.75),
    "integers": (3, 91),
}


@cache
def _family(name: str, dtype: str, pairs: bool = False) -> int:
    """The number of the family that makes these numbers as ATen does; -1 if ATen is called."""
    known, found = DISTRIBUTIONS[name], draws()
    names = [known.pairs] if pairs else known.families
    numbers = [
        i for i, one in enumerate(FAMILIES) if one in names and dtype in FAMILIES[one].dtypes
    ]
    if isinstance(found, Missing) or not numbers:
        return -1
    # 16 bits hide differences that others show
    if dtype in REDUCED and _family(name, "float32", pairs) < 0:
        return -1
    with torch.utils._python_dispatch._disable_current_modes(), torch.inference_mode(False):
        return next((number for number in numbers if _same(found, name, number, dtype, pairs)), -1)


def _same(found: Draws, name: str, family: int, dtype: str, pairs: bool = False) -> bool:
    """Whether ATen makes the same numbers and leaves a generator in the same state. `pairs`: where
    numbers have gaps between them, which it makes pair by pair."""
    parameters = _EXAMPLES[name] if dtype != "bool" or name == "bernoulli" else (0, 2)
    known, a = DISTRIBUTIONS[name], _array(name, dtype, parameters)
    ours, atens = torch.Generator().manual_seed(11), torch.Generator().manual_seed(11)
    for count in TRIED_NARROW if dtype in REDUCED else TRIED:
        one = found.draw(address_of(ours), family, (count,), (1,), dtype, a)
        stride = 2 if pairs else 1
        other = torch.empty(stride * count, dtype=getattr(torch, dtype), device="cpu")[::stride]
        FILLS[name](other, *parameters, generator=atens)
        if not torch.equal(ours.get_state(), atens.get_state()):
            return False
        if not torch.equal(one, other):
            if dtype != "float64":
                return False
            scale = other.abs().clamp(min=abs(known.location(*parameters)))
            if not bool(((one - other).abs() <= WITHIN * scale).all()):
                return False
    return True
