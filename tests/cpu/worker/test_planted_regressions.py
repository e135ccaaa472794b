"""`tcw profile` on samples that each carry one regression: its first line names the cause and the
user's line, in both engines.

Which region lost is measured, so a machine that is too busy to tell is given more rounds. What of
it only a quiet machine can tell is `long`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHANCES = 3

PLANTED = {
    "attention_mask": ("attention_mask.py:28 fused attention became", "for the mask of reach"),
    "break_in_chain": ("break_in_chain.py:15 graph break (print()) between",),
    "float_argument": ("float_argument.py:20 each call recompiles for another temperature",),
}


def first_line(name: str, engine: str, rounds: int) -> str:
    command = [sys.executable, str(ROOT / "tcw.py"), "profile"]
    command += [str(ROOT / "sample_models" / f"{name}.py"), "--engine", engine, "--no-grad"]
    command += ["--quiet", "--rounds", str(rounds)]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=570, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\n")[0]


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("break_in_chain", "tcw"),
        pytest.param("float_argument", "tcw", marks=pytest.mark.long),
        pytest.param("attention_mask", "tcw", marks=pytest.mark.long),
        pytest.param("attention_mask", "inductor", marks=pytest.mark.long),
        pytest.param("break_in_chain", "inductor", marks=pytest.mark.long),
        pytest.param("float_argument", "inductor", marks=pytest.mark.long),
    ],
)
def test_the_first_line_names_the_cause_and_the_line(name: str, engine: str) -> None:
    for chance in range(CHANCES):
        line = first_line(name, engine, 10 * (chance + 1))
        if all(words in line for words in PLANTED[name]):
            return
    pytest.fail(f"{name} with {engine}: {line}")
