"""Faults planted in the product, and the tests that find them: `python -m tests.faults`."""

from __future__ import annotations

from tests.faults import compiler, interface, measure, security
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *compiler.FAULTS,
    *measure.FAULTS,
    *interface.FAULTS,
    *security.FAULTS,
)
