"""Every operation of torch's op database: equal to eager, and lowered where a family covers it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.cpu.lowering.operations import DTYPES, Outcome, first_sample, name_of, outcome

SLICE = 11
"""The ordinary run takes every eleventh operation, in one float and one integer dtype."""


def run(
    infos: list[Any], dtypes: tuple[torch.dtype, ...], *, gradients: bool = False
) -> dict[tuple[str, str], Outcome]:
    """Outcomes by operation and dtype. Fails with all that differ from eager."""
    found: dict[tuple[str, str], Outcome] = {}
    wrong: list[str] = []
    for info in infos:
        name = name_of(info)
        if name.startswith("jiterator") or (gradients and not info.supports_autograd):
            continue
        for dtype in dtypes:
            if dtype not in (info.backward_dtypes if gradients else info.dtypes):
                continue
            kind = str(dtype).removeprefix("torch.")
            try:
                sample = first_sample(info, dtype, gradients=gradients)
                found[name, kind] = outcome(info, sample, gradients=gradients)
            except Exception as error:
                text = str(error).strip().replace("\n", " ")
                wrong.append(f"{name} {kind}: {type(error).__name__}: {text[:300]}")
    assert not wrong, "\n".join(wrong)
    return found


def test_a_slice() -> None:
    assert run(op_db[::SLICE], (torch.float32, torch.int64))


def test_gradients_of_a_slice() -> None:
    assert run(op_db[5 :: 3 * SLICE], (torch.float32,), gradients=True)


@pytest.mark.long
def test_all_gradients() -> None:
    assert run(op_db, (torch.float32, torch.float64), gradients=True)


@pytest.mark.long
def test_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints what falls back and why."""
    found = run(op_db, DTYPES)
    counts: dict[str, int] = {}
    lines: dict[str, list[str]] = {}
    for (name, dtype), result in found.items():
        counts[result.kind] = counts.get(result.kind, 0) + 1
        if result.kind in ("falls back", "whole"):
            text = f"{name}: {result.kind}: {', '.join(result.details)}"
            lines.setdefault(text, []).append(dtype)
    with capsys.disabled():
        print()
        for text, dtypes in lines.items():
            print(f"{text} [{', '.join(dtypes)}]")
        print(counts)
    assert counts["lowered"] > 1000
