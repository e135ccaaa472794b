"""Graph modules that write their Python when somebody calls or reads it, not before.

`_LazyGraphModule` (torch/fx/_lazy_graph_module.py). Without it, a graph module writes its Python
when it is made and after each pass.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from tcw.compiler.control.hooks import Hook, Missing, resolve

_CLASS = "torch.fx._lazy_graph_module:_LazyGraphModule"

HOOK = Hook(
    name="lazy graph modules",
    offers="no Python of graphs that nobody calls or reads",
    needs=(f"{_CLASS}.from_graphmodule",),
    test="engine/test_partition.py",
)


def lazy_module(root: fx.GraphModule, graph: fx.Graph) -> fx.GraphModule:
    """A graph module of `graph`, with the attributes of `root` that it uses."""
    try:
        made: Any = resolve(_CLASS)
    except Missing:
        made = fx.GraphModule
    return made(root, graph)


def as_lazy(module: fx.GraphModule) -> fx.GraphModule:
    """The same module without its Python, which it writes again when it is needed."""
    try:
        made: Any = resolve(f"{_CLASS}.from_graphmodule")
    except Missing:
        return module
    return made(module)
