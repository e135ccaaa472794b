"""`tcw profile` on samples that each carry one regression: its first line names the cause and the
user's line, in both engines.

Which region lost is measured, so a machine that is too busy to tell is given more rounds. What of
it only a quiet machine can tell is `long`.
"""

from __future__ import annotations

import pytest

from tests.cpu.command_line import ROOT, tcw

CHANCES = 3

PLANTED = {
    "attention_mask": ("attention_mask.py:28 fused attention became", "for the mask of reach"),
    "break_in_chain": ("break_in_chain.py:15 graph break (print()) between",),
    "float_argument": ("float_argument.py:20 each call recompiles for a different temperature",),
}


def first_line(name: str, engine: str, rounds: int) -> str:
    file = str(ROOT / "sample_models" / f"{name}.py")
    command = ["profile", file, "--engine", engine, "--no-grad", "--quiet", "--rounds", str(rounds)]
    done = tcw(ROOT, *command, COLUMNS="200", NO_COLOR="1")
    assert done.code == 0, done.err
    return done.out.partition("\n")[0]


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
