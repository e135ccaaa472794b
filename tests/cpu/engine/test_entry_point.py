"""`torch.compile(model, backend="tcw")` in a project with packages named like ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
import torch
assert "compiler" not in sys.modules and "tcw" not in sys.modules
import compiler
import compiler.inner
assert compiler.WHOSE == "theirs"
from importlib.metadata import EntryPoint
from torch._dynamo.backends import registry

registry._lazy_import()
found = EntryPoint("tcw", "tcw:backend", "torch_dynamo_backends")
registry._BACKENDS["tcw"] = found

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1) * compiler.inner.FACTOR

x = torch.randn(4, 8, requires_grad=True)
got = torch.compile(Model(), backend="tcw")(x)
torch.testing.assert_close(got, Model()(x))
got.sum().backward()
import compiler.late
assert compiler.late.WHOSE == "theirs"
import tcw
recording = tcw.explain(Model(), x)
assert recording.graphs == 1 and recording.fused("softmax"), recording
assert compiler is sys.modules["compiler"] and compiler.WHOSE == "theirs"
print("done")
"""


@pytest.mark.parametrize(
    "starts", [1, pytest.param(2, marks=pytest.mark.long)], ids=["cold", "cold and warm"]
)
def test_neither_side_sees_the_others_packages(tmp_path: Path, starts: int) -> None:
    theirs = tmp_path / "project" / "compiler"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").write_text("WHOSE = 'theirs'\n")
    (theirs / "inner.py").write_text("FACTOR = 2\n")
    (theirs / "late.py").write_text("WHOSE = 'theirs'\n")
    program = theirs.parent / "main.py"
    program.write_text(PROGRAM)
    caches = tmp_path / "cache"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(theirs.parent), str(ROOT)]),
        "TCW_STRICT": "1",
        "TCW_CACHE_DIR": str(caches),
    }
    for _ in range(starts):
        done = subprocess.run(
            [sys.executable, str(program)],
            env=environment,
            cwd=theirs.parent,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.stdout.endswith("done\n"), done.stderr


def test_the_entry_point_is_published() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["torch_dynamo_backends"] == {"tcw": "tcw:backend"}
