"""Other ways to write what breaks the graph: pasted, they remove the break and keep the values."""

from __future__ import annotations

import copy
import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._dynamo import config

from tcw.compiler.capture.advice import Broken
from tcw.compiler.capture.advice.hints import hints
from tcw.compiler.protocol.edits import changed
from tcw.compiler.protocol.torch_settings import read_setting
from tcw.compiler.trace.records import Advice, Graph, GraphBreak
from tests.cpu.capture.compiled import compiled

pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAMS = {
    "checksum": (
        """
        import binascii
        def f(x):
            x = x.relu()
            return x * (binascii.crc32(b"layer") % 7)
        """,
        "CRC32 = binascii.crc32(b'layer') % 7\n",
    ),
    "class": (
        """
        import torch
        @torch.no_grad()
        def f(x):
            x = x.relu()
            class Sizes:
                def __init__(self, width=3):
                    self.width = width
            return x * Sizes().width
        """,
        "class Sizes:",
    ),
    "numpy": (
        """
        import numpy as np
        def f(x):
            x = x.relu()
            return x[:: int(np.gcd(x.shape[0], 6))]
        """,
        "int(math.gcd(x.shape[0], 6))",
    ),
    "index": (
        """
        import torch
        GAINS = (0.5, -2.0, 4.0)
        def f(x):
            which = x[0].relu().argmax()
            return x * GAINS[which]
        """,
        "torch.tensor(GAINS).take(which)",
    ),
    "assertion": (
        """
        def f(x):
            y = x.relu()
            assert y.sum() >= 0, f"{x.shape} is negative"
            return y + 1
        """,
        "assert y.sum() >= 0, ' is negative'",
    ),
    "copied": (
        """
        from copy import deepcopy
        def f(x):
            y = x.relu()
            old = deepcopy(y)
            y.add_(1)
            return y * old
        """,
        "old = y.detach().clone()",
    ),
    "objects": (
        """
        def f(x):
            y = x.relu().numpy().astype(object)
            return x * len(y)
        """,
        "y = x.relu().numpy()",
    ),
    "exec": (
        """
        def f(x):
            names = {}
            x = x.relu()
            exec("gain = 0.5", names)
            return x * names["gain"]
        """,
        "names['gain'] = 0.5",
    ),
    "eval": (
        """
        def f(x):
            x = x.relu()
            gain = eval("x.shape[0] + 1")
            return x * gain
        """,
        "gain = (x.shape[0] + 1)",
    ),
    "sorted": (
        """
        import torch
        def f(x):
            parts = [x, x.relu() * 3, x * 0.5]
            best = sorted(parts, key=lambda part: part.max(), reverse=True)
            return torch.cat(best)
        """,
        "argsort(stable=True, descending=True)",
    ),
    "set": (
        """
        import torch
        ALL = {torch.ones(3), torch.ones(1)}
        def f(x):
            x = x.relu()
            for one in ALL:
                x = x + one.sum()
            return x
        """,
        "ALL = [torch.ones(3), torch.ones(1)]",
    ),
    "sparse": (
        """
        import torch
        def f(x):
            y = x @ x.t()
            return torch.sparse.mm(y.relu().to_sparse(), x)
        """,
        "torch.mm(y.relu(), x)",
    ),
    "closing": (
        """
        from contextlib import closing
        class Source:
            gain = 3.0
            def close(self):
                pass
        def f(x):
            x = x.relu()
            with closing(Source()):
                x = x * Source.gain
                # a comment
                x = x + 1
            return x
        """,
        "finally:\n    closed.close()",
    ),
    "random": (
        """
        import torch
        def f(x):
            noise = torch.empty_like(x)
            other = noise
            noise.random_(3, to=9)
            return x + other
        """,
        "noise.copy_(torch.ops.aten.random(noise, 3, to=9))",
    ),
    "keyword": (
        """
        import torch
        bounds = {"to": 4.0, "from": 2.0}
        def f(x):
            return x * torch.empty_like(x).uniform_(**bounds)
        """,
        "uniform_(bounds['from'], bounds['to'])",
    ),
    "out": (
        """
        import torch
        def f(x):
            buffer = torch.empty(x.shape[1], x.shape[0]).t()
            return torch.sub(x, 1, out=buffer) * 2
        """,
        "buffer.copy_(torch.sub(x, 1)) * 2",
    ),
    "out of another shape": (
        """
        import torch
        def f(x):
            total = torch.empty(0)
            torch.sum(x, 0, out=total)
            return total * 2
        """,
        "total = torch.sum(x, 0)",
    ),
    "resized": (
        """
        import torch
        def f(x):
            work = torch.empty(0)
            work.resize_(x.shape[0], 2)
            work.fill_(3)
            return x.sum() + work
        """,
        "work = work.new_empty(x.shape[0], 2)",
    ),
    "storage": (
        """
        import torch
        def f(x):
            y = x * 2
            flat = torch.empty(0)
            flat.set_(y.untyped_storage(), 2, (4,), (1,))
            y.add_(1)
            return flat + 1
        """,
        "flat = y.detach().as_strided((4,), (1,), 2)",
    ),
    "data": (
        """
        def f(x):
            y = x * 2
            y.data = y.data.half()
            return y + 1
        """,
        "y = y.half()",
    ),
    "tolist": (
        """
        import torch
        def f(x):
            w = x[0].relu()
            return torch.stack([x * one for one in w.tolist()])
        """,
        "for one in w.unbind()",
    ),
    "equal": (
        """
        import torch
        def f(x):
            y = x.relu()
            if torch.equal(x, y):
                return x * 2
            # they differ
            return y - 1
        """,
        "torch.where((x == y).all(), x * 2, y - 1)",
    ),
    "copy": (
        """
        def f(x):
            y = x.t()
            if y.data_ptr() % 2:
                y = y.contiguous()
            return y + 1
        """,
        "y = y.clone()",
    ),
    "warns": (
        """
        import warnings
        def f(x):
            x = x.relu()
            warnings.warn("old", UserWarning, stacklevel=2)
            return x + 1
        """,
        "warnings.warn('old')",
    ),
}  # fmt: skip
INPUTS = [torch.randn(4, 3), torch.rand(4, 3), -torch.rand(4, 3)]


def loaded(text: str, file: Path) -> ModuleType:
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def advised(text: str, file: Path) -> list[Advice]:
    """The advice on the first break of its `f`."""
    result = compiled(loaded(text, file).f, *((x.clone(),) for x in INPUTS))
    first = result.recording.all(GraphBreak)[0]
    return [one for one in first.advice if one.by == "tcw"]


def values(function: Any) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [function(copy.deepcopy(x)) for x in INPUTS]


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_removes_the_break_and_keeps_the_values(name: str, tmp_path: Path) -> None:
    source, code = PROGRAMS[name]
    text = textwrap.dedent(source).lstrip("\n")
    advice = next(one for one in advised(text, tmp_path / "before.py") if code in one.code + "\n")
    file = str(tmp_path / "before.py")
    setting = ""
    if advice.changes:
        after = changed(text, advice.changes)
    else:
        setting, _, code = advice.code.partition("\n")
        assert read_setting(setting).name == "reorderable_logging_functions"
        line = next(one for one in text.splitlines() if "warnings.warn" in one)
        after = text.replace(line, f"    {code}")
    assert all(one.file == file for one in advice.changes)
    expected = values(loaded(text, tmp_path / "before.py").f)
    module = loaded(after, tmp_path / "after.py")
    torch._dynamo.reset()
    with config.patch(reorderable_logging_functions=set()):
        exec(setting, {"torch": torch, **vars(module)})
        found = values(torch.compile(module.f, backend="eager", fullgraph=True))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


REFUSED = {
    "a float": ("import numpy as np\n", "print(np.floor(x.shape[0] / 3), end=''); return x"),
    "members of a set": (
        "import torch\nALL = {torch.ones(3), torch.ones(1)}\n",
        "return x + sum(y.sum() for y in ALL if y in ALL)",
    ),
    "a clock": ("import time\n", "return x * (time.time() > 0)"),
    "a local": ("import binascii\n", "n = b'a'; return x * (binascii.crc32(n) % 7)"),
    "a global that changes": (
        "import binascii\nNAME = b'a'\ndef g():\n    global NAME\n    NAME = b'b'\n",
        "return x * (binascii.crc32(NAME) % 7)",
    ),
    "exec with names": ("A = {}\n", "exec('b = x', A, {'x': 1}); return x"),
    "numbers that change": (
        "GAINS = [1.0, 2.0]\nGAINS = [x * 2 for x in GAINS]\n",
        "i = x.argmax(); return x * GAINS[i]",
    ),
    "tensor given": (
        "import torch\nBUFFER = torch.empty(0)\n",
        "BUFFER.resize_(x.shape); return x",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_rewritten_that_may_differ(name: str, tmp_path: Path) -> None:
    above, body = REFUSED[name]
    text = f"{above}def f(x):\n    x = x.relu()\n"
    text += "".join(f"    {line}\n" for line in body.split("; "))
    assert not any(one.changes for one in advised(text, tmp_path / "before.py"))


def test_a_setting_that_torch_names_is_the_code_of_its_hint(tmp_path: Path) -> None:
    text = "import torch\nrnn = torch.nn.GRU(3, 3)\ndef f(x):\n    return rnn(x)[0] + 1\n"
    result = compiled(loaded(text, tmp_path / "before.py").f, (INPUTS[0],))
    first = result.recording.all(GraphBreak)[0].advice[0]
    assert (first.by, first.code) == ("torch", "torch._dynamo.config.allow_rnn = True")


@pytest.mark.parametrize(
    ("hint", "code"),
    [
        ("Change `torch._dynamo.config.trace_numpy` to `False`.", "trace_numpy = False"),
        ("If not, turn `graph_break_on_nn_param_ctor` off", "graph_break_on_nn_param_ctor = False"),
        ("Set torch._dynamo.config.allow_rnn=True", "allow_rnn = True"),
        ("Wrap it in `torch.compiler.disable`, or disable verbose.", ""),
        ("Increase torch._dynamo.config.recompile_limit.", ""),
    ],
)
def test_only_a_switch_that_is_named_as_a_setting_is_code(hint: str, code: str) -> None:
    (advice,) = hints(Broken(type="new", hints=(hint,)))
    assert advice.text == hint
    assert advice.code == (f"torch._dynamo.config.{code}" if code else "")


LOOP = """import torch
WEIGHTS = [torch.ones(3, 3), torch.eye(3), torch.ones(3, 3) / 2]
class Net(torch.nn.Module):
    def forward(self, x):
        seen = []
        for number, weight in enumerate(WEIGHTS):
            h = x @ weight
            # {x}
            print(len(seen), end="")
            if number:
                h = h.relu()
            x = h + 1
            seen.append([one.sum() for one in (x, h)])
        return x, h, seen
f = Net()
"""


def test_the_body_of_a_loop_becomes_a_function(tmp_path: Path) -> None:
    before = tmp_path / "before.py"
    advice = next(one for one in advised(LOOP, before) if "loop body" in one.text)
    expected = loaded(LOOP, before).f(INPUTS[0])
    module = loaded(changed(LOOP, advice.changes), tmp_path / "after.py")
    found = module.f(INPUTS[0])
    torch.testing.assert_close(found, expected)
    graphs = {}
    for name in ("before", "after"):
        torch._dynamo.reset()
        result = compiled(sys.modules[name].f, (INPUTS[0],))
        torch.testing.assert_close(result.result, expected)
        graphs[name] = len([g for g in result.recording.all(Graph) if g.kind == "captured"])
    assert graphs["before"] == 0
    assert graphs["after"] > 0


@pytest.mark.parametrize(
    "body",
    [
        "x = x + 1; print(end=''); break",
        "last = x if number == 0 else last + x; print(end=''); x = x + last",
        "x = x + len(locals()); print(end='')",
        "y = x + 1; print(end=''); x = (lambda: y)()",
    ],
)
def test_a_body_that_is_no_function_stays(body: str, tmp_path: Path) -> None:
    text = "def f(x):\n    for number in range(3):\n"
    text += "".join(f"        {line}\n" for line in body.split("; ")) + "    return x\n"
    assert not any(one.changes for one in advised(text, tmp_path / "before.py"))
