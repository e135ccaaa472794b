"""Private names of torch: each is one hook's, and torch without one says so, or does without."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from typing import Any

import networkx
import pytest
import torch
from torch import nn

import tcw
from tcw.compiler.control import hooks
from tcw.compiler.control.hooks import Hook
from tcw.compiler.engine import hooks as engine
from tcw.compiler.engine import requirements
from tcw.compiler.engine.backend import backend
from tests.cpu import versions

DOCUMENTED = (
    "torch._dynamo.config", "torch._dynamo.mark_dynamic", "torch._dynamo.reset",
    "torch._foreach_copy_", "torch._functorch.config", "torch._inductor.compile_fx.compile_fx",
    "torch._inductor.config", "torch._inductor.list_mode_options",
)  # fmt: skip
"""What torch's documentation describes, although a name in it starts with an underscore."""


def uses(tree: ast.AST) -> Iterator[str]:
    """The names of torch that a module's text imports or reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch."):
            yield ast.unparse(node)


def private(name: str) -> bool:
    parts = name.split(".")
    public = parts[0] != "torch" or parts[1:2] == ["ops"] or name.endswith("__")
    return not public and any(part.startswith("_") for part in parts)


def named(name: str, known: set[str]) -> bool:
    """Whether a hook names it, a part of it, or its module."""
    return any(
        name == one or name.startswith(f"{one}.") or one.startswith(f"{name}.") for one in known
    )


def test_every_private_name_of_torch_is_a_hooks() -> None:
    needs = {
        need.partition("(")[0].replace(":", ".") for hook in versions.HOOKS for need in hook.needs
    }
    lost = {
        f"{name} in {file.relative_to(versions.ROOT)}"
        for folder in ("compiler", "workbench")
        for file in sorted((versions.ROOT / folder).rglob("*.py"))
        for name in uses(ast.parse(file.read_text()))
        if private(name) and not named(name, needs | set(DOCUMENTED))
    }
    assert not lost, sorted(lost)


def test_names_are_unique_and_torch_has_all_of_them() -> None:
    assert len({hook.name for hook in versions.HOOKS}) == len(versions.HOOKS)
    assert {hook.name: reason for hook in versions.HOOKS if (reason := hook.missing())} == {}


def test_the_package_that_lacks_something_is_named() -> None:
    hook = Hook(name="x", offers="", needs=("networkx.algorithms.flow:no_such",), test="")
    assert hook.missing() == (
        f"not available in networkx {networkx.__version__}: no networkx.algorithms.flow:no_such"
    )


OPTIONAL = [
    need
    for hook in engine.HOOKS
    for need in hook.needs
    if hook is not requirements.HOOK and "guards" not in need
]
"""`torch._C._dynamo.guards` is looked up once, when the engine is imported."""


@pytest.mark.parametrize("need", OPTIONAL)
def test_the_engine_does_without(need: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training with a convolution, a resampling, a draw and an optimizer's step."""
    without(need, monkeypatch)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Upsample(scale_factor=2), nn.Dropout(0.5))

    def train() -> list[torch.Tensor]:
        torch.manual_seed(0)
        x = torch.rand(2, 3, 8, 8)
        result: Any = step(x)
        result.sum().backward()
        found = [result, *(p.grad for p in model.parameters())]
        model.zero_grad()
        return found

    step: Callable[..., Any] = model
    expected = train()
    step = torch.compile(model, backend=backend)
    torch.testing.assert_close(train(), expected)


def without(need: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks find nothing under this name."""
    real = hooks.importlib.import_module
    module, _, attributes = need.partition("(")[0].partition(":")

    class Lacking:
        def __getattr__(self, name: str) -> Any:
            if name == attributes.split(".")[0]:
                raise AttributeError(name)
            return getattr(real(module), name)

    def imported(name: str) -> Any:
        return Lacking() if name == module else real(name)

    monkeypatch.setattr(hooks.importlib, "import_module", imported)
    assert [hook for hook in engine.HOOKS if hook.missing()]


def test_what_the_engine_cannot_do_without_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tcw.compiler.engine")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("torch._decomp._core_aten_decompositions_post_autograd")
    with pytest.raises(RuntimeError, match=r'"tcw" is not available in torch .*_post_autograd'):
        tcw.backend(None, [])
