"""Inductor's generated wrapper with instrumentation around each of its calls.

The text is that of torch/_inductor/codegen/wrapper.py: `call`, a function or a method of `Runner`,
runs kernels (`cpp_fused_add_0(…)`, `triton_poi_fused_add_0.run(…)`), library calls
(`extern_kernels.mm(…)`, `torch.ops.aten.sort.stable(…)`), functions of the same module for
subgraphs (`true_graph_0(…)`), and partitions (`self.partitions[0](…)`). Nothing here runs it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Literal

from tcw.compiler.measure.probes.graph_probe import GraphStep

MARK, NOW = "_probe_mark", "_probe_now"
"""Globals that the timed code calls: `MARK((1 + index, NOW()))` when a step starts and `MARK((-1 -
index, NOW()))` when it stops. Both can be C functions, which have no frame."""
BEFORE, SEEN = "_probe_before", "_probe_seen"
"""Globals that the observed code calls with the index of a step and its own local variables."""
TIMED, OBSERVED = "_timed_", "_observed_"
"""Prefixes of the function names in `WrapperCode`."""
_LIBRARIES = ("extern_kernels.", "aten.", "torch.ops.", "inductor_ops.", "_quantized.", "prims.")
_NO_WORK = ("torch.ops.inductor._alloc_from_pool", "inductor_ops._alloc_from_pool")
_METHODS = ("copy_", "zero_", "fill_", "clone", "item")
"""Tensor methods that the wrapper calls for their effect on memory or on the host."""
_LOCALS = "locals"


class NoSteps(Exception):
    """This text is not a Python wrapper; the message says what it is."""


@dataclass(frozen=True)
class ResultName:
    """A name that the wrapper later gives to a part of a step's result."""

    name: str
    source: str
    """The variable that the step's result was assigned to."""
    path: tuple[int, ...]
    """`buf2 = buf0[1]` is (1,)."""


@dataclass
class WrapperCode:
    """The steps of one module's wrapper, and its code with the calls instrumented."""

    steps: list[GraphStep] = field(default_factory=list)
    results: dict[int, list[ResultName]] = field(default_factory=dict)
    """By index of the step."""
    timed: CodeType | None = None
    """Defines `_timed_call` and what it needs: a MARK before and after each step."""
    observed: CodeType | None = None
    """Defines `_observed_call`: BEFORE and SEEN around each step."""
    method: bool = False
    """`call` takes `self` first."""


def instrumented(
    text: str, file: str, kernels: Collection[str], replaced: Collection[int]
) -> WrapperCode:
    """Instrument the text of a generated module. Raises `NoSteps`.

    `file`: the name in tracebacks; line numbers are those of `text`. `kernels`: names of generated
    functions. `replaced`: partitions that run in another way (a CUDA graph); each is one step.
    """
    tree = ast.parse(text, file)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = WrapperCode()
    call = functions.get("call")
    if call is None:
        call = _method(tree)
        found.method = True
    if call is None:
        raise NoSteps("its wrapper is C++ code")
    functions["call"] = call
    lines = text.splitlines()
    for prefix in (TIMED, OBSERVED):
        made = _Instrumenter(functions, lines, frozenset(kernels), frozenset(replaced), prefix)
        made.function("call")
        module = ast.Module(body=list(made.done.values()), type_ignores=[])
        code = compile(ast.fix_missing_locations(module), file, "exec")
        if prefix == TIMED:
            found.timed = code
        else:
            found.observed = code
        found.steps, found.results = made.steps, made.results
    return found


def empty_steps(count: int) -> CodeType:
    """`run`, which makes the marks of `count` empty steps."""
    steps = [ast.Expr(_then(_then(ast.Constant(None), 1 + i), -1 - i)) for i in range(count)]
    tree = ast.parse("def run(): ...")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [_at(step, function.body[0]) for step in steps]
    return compile(ast.fix_missing_locations(tree), "<empty steps>", "exec")


def _method(tree: ast.Module) -> ast.FunctionDef | None:
    """`Runner.call`."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "call":
                    return member
    return None


class _Instrumenter(ast.NodeTransformer):
    """Copies the functions reachable from `call`, with each step's call instrumented."""

    def __init__(
        self,
        functions: dict[str, ast.FunctionDef],
        lines: Sequence[str],
        kernels: frozenset[str],
        replaced: frozenset[int],
        prefix: str,
    ) -> None:
        self.functions = functions
        self.lines = lines
        self.kernels = kernels
        self.replaced = replaced
        self.prefix = prefix
        self.done: dict[str, ast.FunctionDef] = {}
        self.steps: list[GraphStep] = []
        self.results: dict[int, list[ResultName]] = {}
        self._renamed: dict[str, dict[str, list[tuple[int, str, tuple[int, ...]]]]] = {}
        self._within: list[str] = []
        self._called: list[int] = []
        """Steps of the current statement."""

    def function(self, name: str) -> str:
        """Instrument a function of the module, once; returns its new name."""
        new = self.prefix + name
        if name not in self.done:
            made = self.done[name] = copy.deepcopy(self.functions[name])
            made.name = new
            made.decorator_list = []
            called, self._called = self._called, []
            self._within.append("" if name == "call" else name)
            made.body = self._block(made.body)
            self._within.pop()
            self._called = called
        return new

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            self._called = []
            if isinstance(statement, ast.If | ast.While | ast.For | ast.With | ast.Try):
                made += self._compound(statement)
                continue
            changed = self.visit(statement)
            for index in self._called:
                self._name_results(index, statement)
            made += [*self._told(BEFORE, self._called, statement), changed]
            if not isinstance(statement, ast.Return):
                made += self._told(SEEN, self._called, statement)
        return made

    def _compound(self, statement: ast.stmt) -> list[ast.stmt]:
        """Instrument the head of a compound statement, then its blocks. A step in a condition is
        reported at the start of the blocks that it leads to."""
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, name, self.visit(value))
            elif name == "items":
                setattr(statement, name, [self.visit(item) for item in value])
        called = list(self._called)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(statement, name, None)
            if block or (called and name == "orelse" and isinstance(statement, ast.If)):
                seen = self._told(SEEN, called, statement) if name != "finalbody" else []
                setattr(statement, name, seen + self._block(block or []))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self._block(handler.body)
        return [*self._told(BEFORE, called, statement), statement]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        text = self._text(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self.functions:
            node.func.id = self.function(node.func.id)
            return node
        partition = _partition(node.func)
        if partition is not None and partition not in self.replaced:
            name = self.function(f"partition_{partition}")
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
            return node
        if partition is not None:
            return self._step(node, "kernel", f"partition_{partition}", text)
        dotted = _dotted(node.func)
        if dotted.partition(".")[0] in self.kernels:
            return self._step(node, "kernel", dotted.partition(".")[0], text)
        if dotted.startswith(_LIBRARIES) and dotted not in _NO_WORK:
            return self._step(node, "aten", dotted, text)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            return self._step(node, "aten", f"aten.{node.func.attr}", text)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def _step(
        self, node: ast.Call, kind: Literal["kernel", "aten"], name: str, text: str
    ) -> ast.expr:
        index = len(self.steps)
        within = self._within[-1]
        self.steps.append(GraphStep(index, kind, name, text, within))
        self._called.append(index)
        if self.prefix == OBSERVED:
            return node
        # started once all arguments exist: computing them is the wrapper's time
        if node.keywords:
            node.keywords[-1].value = _then(node.keywords[-1].value, 1 + index)
        elif node.args and isinstance(node.args[-1], ast.Starred):
            node.args[-1].value = _then(node.args[-1].value, 1 + index)
        elif node.args:
            node.args[-1] = _then(node.args[-1], 1 + index)
        else:
            node.func = _then(node.func, 1 + index)
        return _then(node, -1 - index)

    def _told(self, name: str, steps: Sequence[int], place: ast.stmt) -> list[ast.stmt]:
        if self.prefix != OBSERVED:
            return []
        made: list[ast.stmt] = []
        for index in steps:
            variables = ast.Call(ast.Name(_LOCALS, ast.Load()), [], [])
            call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(index), variables], [])
            made.append(_at(ast.Expr(call), place))
        return made

    def _name_results(self, index: int, statement: ast.stmt) -> None:
        """Find `buf2 = buf0[1]` and `buf8 = buf7` of a step's result, wherever they are."""
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return
        within = self._within[-1] or "call"
        if within not in self._renamed:
            self._renamed[within] = _renamed(self.functions[within])
        source = statement.targets[0].id
        found: list[ResultName] = []
        waiting: list[tuple[str, int, tuple[int, ...]]] = [(source, statement.lineno, ())]
        while waiting:
            former, since, path = waiting.pop()
            for line, name, part in self._renamed[within].get(former, ()):
                if line > since:
                    found.append(ResultName(name, source, path + part))
                    waiting.append((name, line, path + part))
        self.results[index] = found

    def _text(self, node: ast.expr) -> str:
        end = node.end_lineno or node.lineno
        return " ".join(line.strip() for line in self.lines[node.lineno - 1 : end])


def _renamed(function: ast.FunctionDef) -> dict[str, list[tuple[int, str, tuple[int, ...]]]]:
    """Name -> (line, name, path) of what is assigned from it, or from an item of it, alone."""
    # `buf3 = buf2; del buf2  # reuse` makes another buffer in the same memory
    reused = {node.lineno for node in ast.walk(function) if isinstance(node, ast.Delete)}
    found: dict[str, list[tuple[int, str, tuple[int, ...]]]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node.lineno not in reused:
            target, value = node.targets[0], node.value
            place = _place(value)
            if isinstance(value, ast.Subscript) and place is not None:
                value = value.value
            if isinstance(target, ast.Name) and isinstance(value, ast.Name):
                path = () if place is None else (place,)
                found.setdefault(value.id, []).append((node.lineno, target.id, path))
    return found


def _place(node: ast.expr) -> int | None:
    """2 for `value[2]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, int) else None
    return None


def _partition(function: ast.expr) -> int | None:
    """The number of `self.partitions[…]`."""
    if isinstance(function, ast.Subscript) and _dotted(function.value) == "self.partitions":
        return _place(function)
    return None


def _dotted(node: ast.expr) -> str:
    """`torch.ops.aten.mm` as written; "" for anything but names and attributes."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _then(value: ast.expr, mark: int) -> ast.expr:
    """`(value, MARK((mark, NOW())))[0]`: does not extend the lifetime of the value."""
    now = ast.Call(ast.Name(NOW, ast.Load()), [], [])
    told = ast.Tuple([ast.Constant(mark), now], ast.Load())
    call = ast.Call(ast.Name(MARK, ast.Load()), [told], [])
    made = ast.Subscript(ast.Tuple([value, call], ast.Load()), ast.Constant(0), ast.Load())
    for node in (now, told, call, made.value, made):
        ast.copy_location(node, value)
    return made


def _at(made: ast.stmt, place: ast.stmt) -> ast.stmt:
    """Move all of `made` to the first line of `place`."""
    for node in ast.walk(made):
        ast.copy_location(node, place)
    return made
