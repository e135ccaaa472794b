"""Faults in measurements: their rounds, their noise, what they add up to and compare."""

from __future__ import annotations

from tests.faults.fault import Fault

FAULTS = (
    Fault(
        "the slower of two runs is reported as the faster one",
        "compiler/measure/what_if/compare.py",
        "difference=gained,",
        "difference=-gained,",
        ("tests/cpu/measure/what_if/test_compare.py",),
    ),
    Fault(
        "rounds of a busy machine count as independent",
        "compiler/measure/rounds/noise.py",
        "(root if independent else max(1.0, root))",
        "root",
        ("tests/cpu/measure/rounds/test_noise.py",),
    ),
    Fault(
        "the first of a pair is first in every round",
        "compiler/measure/rounds/rounds.py",
        "return found[::-1] if turn % 2 else found",
        "return found",
        ("tests/cpu/measure/rounds/test_rounds.py",),
    ),
    Fault(
        "the guards of a frame count for its backward too",
        "compiler/measure/account/accounts.py",
        "if cost is None or base not in side.seen or probe.graph.endswith(BACKWARD):",
        "if cost is None or base not in side.seen:",
        ("tests/cpu/measure/account/test_records.py", "tests/cpu/measure/account/test_planted.py"),
    ),
    Fault(
        "calls on transposed tensors count as the same calls",
        "compiler/measure/regions/same_work.py",
        "(value.shape, value.stride, value.dtype)",
        "(value.shape, value.dtype)",
        ("tests/cpu/measure/regions/test_same_work.py",),
    ),
    Fault(
        "an error relative to a negative number is huge",
        "compiler/measure/precision/judge.py",
        "torch.where(both, b.abs(), 1.0)",
        "torch.where(both, b, 1.0)",
        ("tests/cpu/measure/precision/test_reference.py",),
    ),
    Fault(
        "a buffer that two parts of a kernel read counts twice",
        "compiler/measure/work/kernel_work.py",
        "total += min(sum(known), self._whole.get(name, sum(known)))",
        "total += sum(known)",
        ("tests/cpu/measure/work/test_kernel_work.py",),
    ),
    Fault(
        "a change is kept for a gain within the noise",
        "workbench/cli/trials.py",
        "if found.difference < -found.noise:",
        "if found.difference < 0:",
        ("tests/no_torch/cli/test_trials.py",),
    ),
)
