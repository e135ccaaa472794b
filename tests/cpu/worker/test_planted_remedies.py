"""`tcw profile --try` on the samples that each carry one regression: its remedy is found, tried and
judged by its results; the sample itself stays as it is.

Whether the cause is found is measured, so that a machine that is too busy has a second chance.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.command_line import ROOT, tcw

CHANCES = 2

PLANTED: dict[str, dict[str, tuple[bool, str]]] = {
    "break_in_chain": {
        "set reorderable_logging_functions.add(print)": (True, "breaks 1 → 0"),
        "edit drop:15": (True, "breaks 1 → 0"),
    },
    "float_argument": {
        "as-tensor temperature --edit torch-math:20": (True, "compiles 4 → 1"),
    },
    "attention_mask": {"edit no-mask:28": (True, ""), "edit causal:28": (False, "")},
    "troubled_block": {
        "set reorderable_logging_functions.add(print), edit text:29": (True, "breaks"),
        "edit drop:29": (True, "breaks"),
        "edit always:31": (True, "breaks"),
    },
}
"""Id of a trial -> whether its results are those of the base, and what its words say."""


def tried(name: str, folder: Path) -> dict[str, dict[str, Any]]:
    file = ROOT / "sample_models" / f"{name}.py"
    before = file.read_bytes()
    command = ["profile", str(file), "--engine", "tcw", "--no-grad", "--rounds", "5", "--try"]
    done = tcw(folder, *command, "--json", "--quiet", "--patch", str(folder / "kept.patch"))
    assert done.code == 0, done.err
    assert file.read_bytes() == before
    return {one["id"]: one for one in json.loads(done.out)["trials"]}


@pytest.mark.long
@pytest.mark.parametrize("name", PLANTED)
def test_the_remedy_is_tried_and_judged_by_its_results(name: str, tmp_path: Path) -> None:
    wanted = PLANTED[name]
    for _ in range(CHANCES):
        found = tried(name, tmp_path)
        if wanted.keys() <= found.keys():
            break
    for id, (equal, words) in wanted.items():
        one = found[id]
        assert one["equal"] is equal, one
        assert words in one["words"], one
        assert equal or not one["kept"]
        assert bool(one["diff"]) is ("edit" in id)
