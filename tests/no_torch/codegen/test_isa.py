"""Which instruction set is chosen, and how many lanes a nest gets."""

from __future__ import annotations

import pytest

from tcw.compiler.codegen.cpp import isa
from tcw.compiler.processor import feature_flags

AVX2_FLAGS = frozenset(["avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "sse2"])
AVX512_FLAGS = AVX2_FLAGS | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])


def test_the_widest_that_the_cpu_runs_comes_first() -> None:
    assert isa.runnable(AVX512_FLAGS) == (isa.AVX512, isa.AVX2, isa.PORTABLE)
    assert isa.runnable(AVX2_FLAGS) == (isa.AVX2, isa.PORTABLE)
    assert isa.runnable(AVX512_FLAGS - {"avx512dq"}) == (isa.AVX2, isa.PORTABLE)
    assert isa.runnable(frozenset()) == (isa.PORTABLE,)


def test_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(isa.OVERRIDE, "portable")
    assert isa.detect() is isa.PORTABLE
    monkeypatch.setenv(isa.OVERRIDE, "mmx")
    with pytest.raises(ValueError, match="TCW_ISA='mmx': not one of avx512, avx2, portable"):
        isa.detect()
    monkeypatch.delenv(isa.OVERRIDE)
    assert isa.detect() is isa.runnable(feature_flags())[0]


@pytest.mark.parametrize(
    ("sizes", "lanes"),
    [((4,), 16), ((4, 8), 8), ((1,), 16), ((2,), 16), ((1, 8), 8), ((), 16)],
)
def test_no_vector_of_a_nest_is_wider_than_the_machines(sizes: tuple[int, ...], lanes: int) -> None:
    assert isa.AVX512.lanes(sizes) == lanes
    assert isa.AVX2.lanes(sizes) == lanes // 2
