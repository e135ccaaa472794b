from __future__ import annotations

from compiler.measure.probes.calling import calling_ns


def test_a_call_from_python_takes_something() -> None:
    assert 0 < calling_ns() < 1_000_000
    assert calling_ns() == calling_ns()
