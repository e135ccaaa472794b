"""FX graphs: captured by Dynamo, made by AOTAutograd, or changed by Inductor's passes."""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *

GraphKind = Literal[
    "captured",  # Dynamo's output graph                 id `0/0`
    "joint",  # AOTAutograd, forward and backward        id `0/0/joint`
    "forward",  # its forward half                       id `0/0/forward`
    "backward",  # its backward half                     id `0/0/backward`
    "inference",  # AOTAutograd without a backward       id `0/0/inference`
    "lowered",  # what Inductor lowers, after its passes id `0/0/forward/lowered`
]


class Node(Part):
    """One FX node."""

    name: str
    op: str
    """placeholder, get_attr, call_function, call_method, call_module, output."""
    target: str
    """`torch.nn.functional.gelu`, `aten.addmm.default`, `L_x_`, …"""
    args: str = ""
    """Arguments as written in a call, nodes by name: `x, 8, dim=-1`."""
    inputs: tuple[str, ...] = ()
    """Names of the nodes read, in order, each once."""
    value: TensorMeta | None = None
    values: tuple[TensorMeta | None, ...] = ()
    """The outputs of a node with several."""
    module: str = ""
    """Path of the module it ran in: `layers.0.attention`."""
    location: Location | None = None
    """The user's line: the deepest frame outside torch and the standard library."""
    inferred: bool = False
    """True: torch recorded no line; this is the line of the nodes it was made from."""
    stack: tuple[Location, ...] = ()
    """Outermost first; only if there is more than `location`."""
    origins: tuple[str, ...] = ()
    """Nodes of `Graph.parent` it was made from, according to torch's provenance."""
    made_by: str = ""
    """The pass that made it, if torch says so."""


class Graph(Record):
    """One FX graph, whole."""

    id: str
    kind: GraphKind
    compile_id: str
    nodes: tuple[Node, ...]
    parent: str = ""
    """The graph it was made from: `0/0` for `0/0/forward`."""
    ops: Count = 0
    """Nodes that compute: call_function, call_method, call_module (torch's own `op_count`)."""
    code: TextHash = ""
    """torch's readable print (`print_readable`), if requested."""
    call: Count = 0
