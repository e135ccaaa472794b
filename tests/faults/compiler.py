"""Faults in the stages between a user's function and its kernels, and in their traces."""

from __future__ import annotations

from tests.faults.fault import Fault

FAULTS = (
    Fault(
        "doubled lines make up for missing ones",
        "compiler/trace/reader.py",
        "found = self._lines - 1 - self.losses.doubled",
        "found = self._lines - 1",
        ("tests/no_torch/trace/test_untrusted.py", "tests/no_torch/trace/test_round_trip.py"),
    ),
    Fault(
        "a text is stored each time",
        "compiler/trace/writer.py",
        "                self._texts.add(key)\n",
        "",
        ("tests/no_torch/trace/test_round_trip.py",),
    ),
    Fault(
        "an inferred link replaces an exact one",
        "compiler/trace/provenance.py",
        "        exact = exact or before.get(origin, False)\n",
        "",
        ("tests/no_torch/test_provenance.py",),
    ),
    Fault(
        "model.py:3 also stops in my_model.py",
        "compiler/control/matching.py",
        'file.endswith(f"/{wanted.file}")',
        "file.endswith(wanted.file)",
        ("tests/no_torch/control/test_breakpoints.py", "tests/no_torch/control/test_stops.py"),
    ),
    Fault(
        "a division that leaves a remainder counts as exact",
        "compiler/loops/sizes.py",
        "        if factor % lead_factor:\n            return None\n",
        "",
        ("tests/no_torch/loops/test_layouts.py",),
    ),
    Fault(
        "a value's memory is free in the nest that reads it last",
        "compiler/memory/arena.py",
        "return self.first <= other.last and other.first <= self.last",
        "return self.first < other.last and other.first < self.last",
        ("tests/no_torch/memory/test_planner.py",),
    ),
)
