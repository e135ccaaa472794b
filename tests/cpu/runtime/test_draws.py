"""The library of random numbers: ATen's bits, and the generator where ATen would leave it."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tcw.compiler.codegen.cpp.isa import AVX2, detect
from tcw.compiler.codegen.draws.text import FAMILIES
from tcw.compiler.control.hooks import Missing
from tcw.compiler.loops.interpreter.draws import ATEN, FILLS
from tcw.compiler.runtime import draws as module
from tcw.compiler.runtime.draws import DISTRIBUTIONS, distribution, draws, slopes
from tcw.compiler.runtime.generator import HOOK, address_of

COUNTS = (1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 311, 312, 313, 623, 624, 625, 2047, 2048, 2049)
"""Around vectors, sixteens, the engine's 624 words, and the library's chunks."""
LARGE = (1 << 15) + 5
"""Two threads share this many."""

PARAMETERS: dict[str, tuple[tuple[float, ...], ...]] = {
    "uniform": ((0.0, 1.0), (-1.5, 2.0), (3.0, 3.0)),
    "normal": ((0.0, 1.0), (0.5, 1.3), (2.0, 0.0)),
    "bernoulli": ((0.0,), (0.1,), (0.5,), (1.0,)),
    "exponential": ((1.0,), (1.7,), (1e-3,)),
    "geometric": ((0.3,), (0.97,), (1e-3,)),
    "cauchy": ((0.0, 1.0), (0.5, 1.3)),
    "log_normal": ((0.0, 1.0), (1.0, 2.0)),
    "integers": ((0, 10), (-3, 100)),
}
CASES = [
    (name, dtype)
    for name, known in DISTRIBUTIONS.items()
    for dtype in dict.fromkeys(
        dtype for family in known.families for dtype in FAMILIES[family].dtypes
    )
]


@pytest.fixture(autouse=True)
def _available() -> Iterator[None]:
    if isinstance(draws(), Missing):
        pytest.skip(str(draws()))
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def parameters(name: str, dtype: str) -> tuple[tuple[float, ...], ...]:
    if name != "integers":
        return PARAMETERS[name]
    return {"bool": ((0, 2),), "uint8": ((0, 10),)}.get(dtype, PARAMETERS[name])


def both(name: str, dtype: str, count: int, *a: float) -> tuple[torch.Tensor, torch.Tensor]:
    """ATen's numbers and ours from one state; what is drawn next is equal, too."""
    before = torch.get_rng_state()
    expected = torch.empty(count, dtype=getattr(torch, dtype))
    FILLS[name](expected, *a)
    state, following = torch.get_rng_state(), torch.rand(3)
    torch.set_rng_state(before)
    found = distribution(name)((count,), (1,), dtype, *a)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(torch.rand(3), following)
    return expected, found


OTHERWISE = {"2.12": {("normal", "float16"), ("normal", "bfloat16")}}
"""What one version of torch draws in another way, so that ATen's function is called."""


def ours(name: str, dtype: str, pairs: bool = False) -> bool:
    """Whether the library makes the numbers."""
    return module._family(name, dtype, pairs) >= 0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_numbers_and_states_are_those_of_aten(name: str, dtype: str, threads: int) -> None:
    torch.set_num_threads(threads)
    torch.manual_seed(7)
    for a in parameters(name, dtype):
        for count in (LARGE,) if threads == 2 else (*COUNTS, LARGE):
            expected, found = both(name, dtype, count, *a)
            if dtype != "float64" or name in ("uniform", "integers", "geometric"):
                assert torch.equal(expected, found), (a, count)
            else:
                far = ulps(expected, found, DISTRIBUTIONS[name].location(*a))
                often = 0.08
                if name == "log_normal":  # exp magnifies the last bits of its argument
                    far, often = far / (1 + a[0] + (expected.log() - a[0]).abs()), 0.25
                assert far.max() <= 3, (a, count, far.max())
                assert count < LARGE or (far > 0).double().mean() <= often, (a, count)


def ulps(expected: torch.Tensor, found: torch.Tensor, location: float) -> torch.Tensor:
    """Differences in units of the last bit of what was added to the distribution's location, or of
    the location."""
    scale = torch.frexp((expected - location).abs() + abs(location) + 1e-300).exponent
    return (expected - found).abs() / torch.ldexp(torch.ones_like(expected), scale - 53)


def test_on_this_machine_all_of_them_are_ours() -> None:
    """torch's builds for AVX2 have what is imitated."""
    if detect().vector_bytes < AVX2.vector_bytes:
        pytest.skip("ATen calls libm on this machine")
    atens = {case for case in CASES if not ours(*case)}
    version = ".".join(torch.__version__.split(".")[:2])
    assert atens == OTHERWISE.get(version, set())


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8)])
def test_numbers_of_which_every_step_is_rounded(dtype: str, bits: int) -> None:
    """As torch makes them before 2.13, from the words that `torch.rand` takes 24 bits of."""
    made = module.draws()
    assert not isinstance(made, Missing)
    narrow, mean, deviation = getattr(torch, dtype), 0.7, 1.3
    words = (torch.rand(2400, generator=torch.Generator().manual_seed(3)) * 2**24).long()
    uniform = (words % 2**bits / 2**bits).to(narrow)

    def found(name: str, *a: float) -> torch.Tensor:
        family = list(FAMILIES).index(f"{name}_rounded_{dtype}")
        generator, array = torch.Generator().manual_seed(3), module._array(name, dtype, a)
        return made.draw(address_of(generator), family, (2400,), (1,), dtype, array)

    first, second = uniform.view(-1, 2, 8).unbind(1)
    radius = (-2 * (1 - first).log()).sqrt()
    angle = (2 * math.pi * second.double()).float().to(narrow)
    sides = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    location, scale = torch.tensor([mean, deviation], dtype=narrow).unbind()
    expected = (sides * scale + location).view(-1)
    assert torch.equal(found("normal", mean, deviation), expected)
    start, end = torch.tensor([-0.3, 0.9], dtype=narrow).unbind()
    spread = (uniform.double() * (end - start).double() + start.double()).float().to(narrow)
    assert torch.equal(found("uniform", -0.3, 0.9), spread)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_normal_numbers_that_aten_makes_pair_by_pair(dtype: str, threads: int) -> None:
    """Few, or not in row-major order; half a pair that is left is used by the next draw."""
    if detect().vector_bytes < AVX2.vector_bytes:
        pytest.skip("ATen calls libm on this machine")
    assert ours("normal", dtype, pairs=True)
    torch.set_num_threads(threads)
    shapes = [((count,), (1,)) for count in (1, 2, 7, 15)]
    shapes += [((n, m), (1, n)) for n, m in ((2, 8), (7, 9), (31, 33), (181, 183))]
    for sizes, strides in shapes:
        for a in PARAMETERS["normal"]:
            torch.manual_seed(7)
            expected = [ATEN["normal"](sizes, strides, dtype, *a) for _ in range(3)]
            state = torch.get_rng_state()
            torch.manual_seed(7)
            found = [distribution("normal")(sizes, strides, dtype, *a) for _ in range(3)]
            assert torch.equal(torch.get_rng_state(), state)
            for one, other in zip(found, expected, strict=True):
                assert one.stride() == other.stride()
                if dtype == "float64":
                    assert ulps(other, one, DISTRIBUTIONS["normal"].location(*a)).max() <= 3
                else:
                    assert torch.equal(one, other), (sizes, a)


def test_a_rare_difference_in_16_bits_is_found() -> None:
    """torch 2.12 rounds a normal number elsewhere in bfloat16: one in 8,000 differs."""
    if not ours("normal", "bfloat16"):
        pytest.skip("ATen makes them")
    draws = module.draws()

    class Rare:
        @staticmethod
        def draw(*arguments: Any) -> torch.Tensor:
            found = draws.draw(*arguments)  # type: ignore[union-attr]
            found[6601:6602] *= 1.01
            return found

    family = module._family("normal", "bfloat16")
    assert module._same(draws, "normal", family, "bfloat16")  # type: ignore[arg-type]
    assert not module._same(Rare(), "normal", family, "bfloat16")  # type: ignore[arg-type]


def test_the_generator_keeps_the_second_of_a_pair_as_eager_does() -> None:
    """Normal numbers one at a time take what log-normal ones left, and the other way round."""
    torch.manual_seed(3)
    before = torch.get_rng_state()
    rows: list[list[torch.Tensor]] = []
    for draw in (lambda n: torch.empty(n).log_normal_(0.5, 1.3), _log_normal):
        torch.set_rng_state(before)
        rows.append([])
        for count in (33, 5, 64, 1, 1):
            rows[-1] += [draw(count), torch.randn(3), torch.randn(17)]
    assert all(map(torch.equal, *rows))


def _log_normal(count: int) -> torch.Tensor:
    return distribution("log_normal")((count,), (1,), "float32", 0.5, 1.3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("threads", [1, 2])
def test_slopes_go_to_what_is_not_positive(dtype: torch.dtype, threads: int) -> None:
    torch.set_num_threads(threads)
    for count in (1, 5, 2048, 2053, LARGE):
        x = torch.randn(count, dtype=dtype)
        x[::7], x[1::31] = 0.0, float("nan")
        torch.manual_seed(count)
        noise = torch.empty_like(x)
        torch.ops.aten.rrelu_with_noise.default(x, noise, 0.1, 0.3, True)
        state = torch.get_rng_state()
        torch.manual_seed(count)
        assert torch.equal(slopes(x, 0.1, 0.3), noise)
        assert torch.equal(torch.get_rng_state(), state)
    assert module._same_slopes(str(dtype).removeprefix("torch."))


def test_strides_are_those_that_were_asked_for() -> None:
    torch.manual_seed(0)
    made = distribution("uniform")((40, 50), (1, 40), "float32", 0.0, 1.0)
    torch.manual_seed(0)
    expected = torch.empty(50, 40).t().uniform_()
    assert made.stride() == (1, 40)
    assert torch.equal(made, expected)


def test_large_numbers_of_them_lie_in_memory_that_is_used_again() -> None:
    count = 1 << 20
    draw = distribution("uniform")
    addresses = {draw((count,), (1,), "float32", 0.0, 1.0).data_ptr() for _ in range(4)}
    assert len(addresses) <= 2


def test_atens_numbers_where_the_library_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a torch that draws otherwise: the comparison fails, and ATen is called."""
    right = DISTRIBUTIONS["normal"]
    wrong = module.Distribution(right.families, lambda d, m, s: (m, s + 1e-6))
    monkeypatch.setitem(DISTRIBUTIONS, "normal", wrong)
    module._family.cache_clear()
    module._array.cache_clear()
    try:
        assert not ours("normal", "float32")
        assert torch.equal(*both("normal", "float32", 100, 0.0, 1.0))
    finally:
        module._family.cache_clear()
        module._array.cache_clear()


def test_a_fake_tensor_is_returned_where_tensors_are_fake() -> None:
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    before = torch.get_rng_state()
    with FakeTensorMode():
        made = distribution("normal")((100,), (1,), "float32", 0.0, 1.0)
    assert isinstance(made, FakeTensor)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_fork_draws_what_its_parent_draws() -> None:
    torch.manual_seed(5)
    distribution("bernoulli")((1000,), (1,), "bool", 0.5)
    reading, writing = os.pipe()
    child = os.fork()
    drawn = distribution("bernoulli")((1000,), (1,), "bool", 0.5)
    content = bytes(drawn.view(torch.uint8).tolist())
    if child == 0:
        os.write(writing, content)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 1000) == content


def test_threads_that_draw_at_once_share_the_stream() -> None:
    """The library holds the generator's mutex: no word is drawn twice, none is lost."""
    torch.manual_seed(9)
    start = torch.get_rng_state()
    rounds, count = 40, 3000

    def draw(own: Any) -> None:
        for _ in range(rounds):
            own()

    work = (
        lambda: distribution("uniform")((count,), (1,), "float32", 0.0, 1.0),
        lambda: torch.rand(count),
    )
    threads = [threading.Thread(target=draw, args=(one,)) for one in work * 2]
    for thread in threads:
        thread.start()
    for one in threads:
        one.join()
    state = torch.get_rng_state()
    torch.set_rng_state(start)
    torch.rand(4 * rounds * count)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_hook_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert HOOK.check().available
    assert address_of(torch.default_generator)
    from tcw.compiler.runtime import generator

    monkeypatch.setattr(generator, "FUNCTIONS", ("_ZN2at16CPUGeneratorImpl4lostEv",))
    generator.generator_functions.cache_clear()
    try:
        status = HOOK.check()
        assert not status.available
        assert "CPUGeneratorImpl4lost" in status.reason
    finally:
        generator.generator_functions.cache_clear()


def test_probabilities_are_compared_exactly() -> None:
    """A bound is the integer from which 53 bits are no longer less than p."""
    for p in (0.0, 0.1, 0.3, 0.5, 1 - 2**-53, 1.0, 2**-60):
        (bound,) = DISTRIBUTIONS["bernoulli"].parameters("bool", p)
        assert bound == math.ceil(p * 2**53)
        assert (bound - 1) * 2.0**-53 < p or bound == 0
        assert not bound * 2.0**-53 < p
