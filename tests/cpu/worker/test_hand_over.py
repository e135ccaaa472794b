"""What the user's file finds: its own packages, of any name, and what Python gives a program."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tcw.compiler.trace.records import End, Failure, Output, Settings, Warned
from tests.cpu.worker.recorded import recorded
from tests.long import mostly_long

FOLDERS = ("compiler", "viewers", "workbench", "sample_models")
"""Folders of ours, which a user's packages may be named like."""
cold = pytest.mark.cold_start
"""What a process imports, and when, is the subject."""
MODEL = """
import sys
import torch
{imports}

def model(x):
    torch._dynamo.graph_break()
    return torch.sin(x) * {factor}

example_inputs = [(torch.ones(size, requires_grad=True),) for size in {sizes}]
"""


@cold
@pytest.mark.parametrize("sizes", mostly_long([((2,),), ((2, 3),)], [((2,),)]))
def test_packages_with_the_names_of_our_folders(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """Each package of theirs raises where something of ours would be imported from it."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"FACTOR = {len(name)}\nWHOSE = 'theirs'\n")
    (tmp_path / "compiler" / "trace.py").write_text("raise RuntimeError('theirs')\n")
    text = MODEL.format(
        imports="\n".join(f"import {name}; assert {name}.WHOSE == 'theirs'" for name in FOLDERS),
        factor="compiler.FACTOR",
        sizes=sizes,
    )
    found = recorded(tmp_path, text, until="run", grad="train")
    assert found.end.status == "ok"
    assert not found.all(Failure)
    assert not [warned for warned in found.all(Warned) if "import" in warned.message.lower()]


def test_arguments_path_and_name_are_those_of_a_program(tmp_path: Path) -> None:
    text = """
        import sys
        print(sys.argv, sys.path[0], __name__)
        def model(x): return x
        example_inputs = (1,)
    """
    found = recorded(tmp_path, textwrap.dedent(text), arguments=("--width", "8"))
    assert found.end.status == "ok"
    printed = "".join(output.text for output in found.all(Output))
    assert f"['{found.file}', '--width', '8'] {tmp_path} model\n" in printed


@cold
def test_nothing_is_written_beside_the_users_file(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def model(x): return x\n")
    found = recorded(tmp_path, "from helper import model\nexample_inputs = (1,)\n")
    assert found.end.status == "ok"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["helper.py", "model.py", "run.tcw"]


def test_no_trace_file(tmp_path: Path) -> None:
    from tcw.workbench.worker.client import record

    file = tmp_path / "model.py"
    file.write_text("raise ValueError('no')\n")
    found: list[object] = []
    end = record(Settings(file=str(file), until="load"), trace=None, on_record=found.append)
    assert end.status == "failed"
    assert isinstance(found[-1], End)
    assert [path.name for path in tmp_path.iterdir()] == ["model.py"]
