"""The Python of a compiled graph with instrumentation around each of its calls.

The text is that of Inductor's wrapper (torch/_inductor/codegen/wrapper.py), of our engine's
(compiler/runtime/wrapper.py), or of an FX graph; `Rules` say which calls are steps. In Inductor's,
subgraphs are functions of the same module (`true_graph_0(…)`), and so are partitions
(`self.partitions[0](…)`). Nothing here runs the text.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Literal

from tcw.compiler.measure.probes.steps import GraphStep

MARK, NOW = "_probe_mark", "_probe_now"
"""Globals that the timed code calls: `MARK((1 + index, NOW()))` when a step starts and `MARK((-1 -
index, NOW()))` when it stops. Both can be C functions, which have no frame."""
BEFORE, SEEN = "_probe_before", "_probe_seen"
"""Globals that the observed code calls with the index of a step and its own local variables."""
TIMED, OBSERVED = "_timed_", "_observed_"
"""Prefixes of the function names in `WrapperCode`."""

StepKind = Literal["kernel", "aten"]


class NoSteps(Exception):
    """This text is not a Python wrapper; the message says what it is."""


@dataclass(frozen=True)
class CalledStep:
    """A step that a call makes."""

    kind: StepKind
    name: str
    text: str = ""
    """By default the call as written."""
    measured: bool = True
    """False if the called function measures it itself."""


@dataclass(frozen=True)
class Rules:
    """How a text is read."""

    steps_of: Callable[[ast.Call, str], Sequence[CalledStep]]
    """The steps that a call makes, given what it calls: `torch.ops.aten.mm`, or "" for anything but
    names and attributes."""
    finishing: Collection[str] = ()
    """Functions that a statement after a step may call on its result, on a condition or not, as
    part of the step."""
    replaced: Collection[int] = ()
    """Partitions that run in another way (a CUDA graph): each is one step."""
    named_later: bool = False
    """Parts of a step's result, and the result itself, may get other names after it."""
    all_variables: bool = False
    """SEEN gets all variables: those of a step's arguments and results are not enough."""


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
    reads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The variables in a step's arguments, by index of the step."""
    makes: dict[int, str] = field(default_factory=dict)
    """The variable that a step's result is assigned to."""
    results: dict[int, list[ResultName]] = field(default_factory=dict)
    timed: CodeType | None = None
    """Defines `_timed_call` and what it needs: a MARK before and after each step."""
    observed: CodeType | None = None
    """Defines `_observed_call`: BEFORE and SEEN around each step."""
    method: bool = False
    """`call` takes `self` first."""


def instrumented(text: str, file: str, rules: Rules, entry: str = "call") -> WrapperCode:
    """Instrument the text of a module. Raises `NoSteps`.

    `file`: the name in tracebacks; line numbers are those of `text`. `entry`: the function that is
    the graph.
    """
    tree = ast.parse(text, file)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    wrapper_code = WrapperCode()
    call = functions.get(entry)
    if call is None:
        call = _method(tree)
        wrapper_code.method = True
    if call is None:
        raise NoSteps("its wrapper is C++ code")
    functions[entry] = call
    lines = text.splitlines()
    for prefix in (TIMED, OBSERVED):
        wrapper_code.steps = []
        made = _Instrumenter(functions, lines, rules, prefix, wrapper_code)
        made.function(entry)
        module = ast.Module(body=list(made.done.values()), type_ignores=[])
        code = compile(ast.fix_missing_locations(module), file, "exec", dont_inherit=True)
        if prefix == TIMED:
            wrapper_code.timed = code
        else:
            wrapper_code.observed = code
    return wrapper_code


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
    """Copies the functions reachable from the graph's, with each step's call instrumented."""

    def __init__(
        self,
        functions: dict[str, ast.FunctionDef],
        lines: list[str],
        rules: Rules,
        prefix: str,
        found: WrapperCode,
    ) -> None:
        self.functions = functions
        self.lines = lines
        self.rules = rules
        self.prefix = prefix
        self.found = found
        self.done: dict[str, ast.FunctionDef] = {}
        self._renamed: dict[str, dict[str, list[tuple[int, str, tuple[int, ...]]]]] = {}
        self._within: list[str] = []
        self._local: set[str] = set()
        """The variables of the current function."""
        self._called: list[int] = []
        """Steps of the current statement."""
        self._finished_later = False
        """Whether statements after the current one belong to its step."""

    def function(self, name: str) -> str:
        """Instrument a function of the module, once; returns its new name."""
        new = self.prefix + name
        if name not in self.done:
            made = self.done[name] = copy.deepcopy(self.functions[name])
            made.name = new
            made.decorator_list = []
            before = self._called, self._local, self._finished_later
            self._local = _variables(made)
            self._within.append(name)
            made.body = self._block(made.body)
            self._within.pop()
            self._called, self._local, self._finished_later = before
        return new

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        waiting = body[::-1]
        while waiting:
            statement = waiting.pop()
            self._called = []
            if isinstance(statement, ast.If | ast.While | ast.For | ast.With | ast.Try):
                made += self._compound(statement)
                continue
            rest: list[ast.stmt] = []
            targets = _targets(statement)
            while waiting and targets and _finishes(waiting[-1], targets, self.rules.finishing):
                rest.append(waiting.pop())
            self._finished_later = bool(rest)
            changed = self.visit(statement)
            for index in self._called:
                self._name_results(index, statement)
            made += [*self._reports(BEFORE, self._called, statement), changed, *rest]
            if rest and self.prefix == TIMED:
                made += [_at(ast.Expr(_mark(-1 - i)), rest[-1]) for i in self._called]
            if not isinstance(statement, ast.Return):
                made += self._reports(SEEN, self._called, statement)
        return made

    def _compound(self, statement: ast.stmt) -> list[ast.stmt]:
        """Instrument the head of a compound statement, then its blocks. A step in a condition is
        reported at the start of the blocks that it leads to."""
        self._finished_later = False
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, name, self.visit(value))
            elif name == "items":
                setattr(statement, name, [self.visit(item) for item in value])
        called = list(self._called)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(statement, name, None)
            if block or (called and name == "orelse" and isinstance(statement, ast.If)):
                seen = self._reports(SEEN, called, statement) if name != "finalbody" else []
                setattr(statement, name, seen + self._block(block or []))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self._block(handler.body)
        return [*self._reports(BEFORE, called, statement), statement]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        end = node.end_lineno or node.lineno
        text = " ".join(line.strip() for line in self.lines[node.lineno - 1 : end])
        reads = self._names_in(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self.functions:
            node.func.id = self.function(node.func.id)
            return node
        partition = _partition(node.func)
        if partition is not None and partition not in self.rules.replaced:
            name = self.function(f"partition_{partition}")
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
            return node
        steps = self.rules.steps_of(node, dotted(node.func))
        if partition is not None:
            steps = [CalledStep("kernel", f"partition_{partition}")]
        made: ast.expr = node
        within = self._within[-1] if len(self._within) > 1 else ""
        for step in steps:
            index = len(self.found.steps)
            self.found.steps.append(
                GraphStep(index, step.kind, step.name, step.text or text, within)
            )
            if step.measured:
                self.found.reads[index] = reads
                self._called.append(index)
                made = self._marked(node, index) if self.prefix == TIMED else node
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def _names_in(self, node: ast.AST) -> tuple[str, ...]:
        names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        return tuple(dict.fromkeys(name for name in names if name in self._local))

    def _marked(self, node: ast.Call, index: int) -> ast.expr:
        # started once all arguments exist: computing them is the wrapper's time
        if node.keywords:
            node.keywords[-1].value = _then(node.keywords[-1].value, 1 + index)
        elif node.args and isinstance(node.args[-1], ast.Starred):
            node.args[-1].value = _then(node.args[-1].value, 1 + index)
        elif node.args:
            node.args[-1] = _then(node.args[-1], 1 + index)
        else:
            node.func = _then(node.func, 1 + index)
        return node if self._finished_later else _then(node, -1 - index)

    def _reports(self, name: str, steps: Sequence[int], place: ast.stmt) -> list[ast.stmt]:
        if self.prefix != OBSERVED:
            return []
        made: list[ast.stmt] = []
        for index in steps:
            names = self.found.reads[index]
            if name == SEEN:
                names = tuple(dict.fromkeys((*names, *_targets(place))))
            variables: ast.expr = ast.Dict(
                [ast.Constant(one) for one in names], [ast.Name(one, ast.Load()) for one in names]
            )
            if name == SEEN and self.rules.all_variables:
                variables = ast.Call(ast.Name("locals", ast.Load()), [], [])
            call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(index), variables], [])
            made.append(_at(ast.Expr(call), place))
        return made

    def _name_results(self, index: int, statement: ast.stmt) -> None:
        """Find `buf2 = buf0[1]` and `buf8 = buf7` of a step's result, wherever they are."""
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return
        within = self._within[-1]
        if within not in self._renamed:
            self._renamed[within] = _renamed(self.functions[within])
        source = self.found.makes[index] = statement.targets[0].id
        if not self.rules.named_later:
            return
        names: list[ResultName] = []
        waiting: list[tuple[str, int, tuple[int, ...]]] = [(source, statement.lineno, ())]
        while waiting:
            former, since, path = waiting.pop()
            for line, name, part in self._renamed[within].get(former, ()):
                if line > since:
                    names.append(ResultName(name, source, path + part))
                    waiting.append((name, line, path + part))
        self.found.results[index] = names


def _variables(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    names = {
        posonlyarg.arg
        for posonlyarg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    stored = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    return names | {name.id for name in stored if isinstance(name.ctx, ast.Store)}


def _targets(statement: ast.stmt) -> list[str]:
    """The variables that a statement assigns, without `_`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    nodes = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return [node.id for node in nodes if node.id != "_"]


def _finishes(statement: ast.stmt, made: Collection[str], functions: Collection[str]) -> bool:
    if isinstance(statement, ast.Delete):
        return bool(functions) and ast.unparse(statement) == "del _"  # unused results
    if isinstance(statement, ast.If):
        return all(_finishes(one, made, functions) for one in statement.body)
    call = statement.value if isinstance(statement, ast.Assign) else None
    return (
        isinstance(call, ast.Call)
        and dotted(call.func) in functions
        and bool(call.args)
        and isinstance(call.args[0], ast.Name)
        and call.args[0].id in made
    )


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
    if isinstance(function, ast.Subscript) and dotted(function.value) == "self.partitions":
        return _place(function)
    return None


def dotted(node: ast.expr) -> str:
    """`torch.ops.aten.mm` as written; "" for anything but names and attributes."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _mark(number: int) -> ast.expr:
    """`MARK((number, NOW()))`."""
    now = ast.Call(ast.Name(NOW, ast.Load()), [], [])
    mark = ast.Tuple([ast.Constant(number), now], ast.Load())
    return ast.Call(ast.Name(MARK, ast.Load()), [mark], [])


def _then(value: ast.expr, mark: int) -> ast.expr:
    """`(value, MARK((mark, NOW())))[0]`: does not extend the lifetime of the value."""
    call = _mark(mark)
    made = ast.Subscript(ast.Tuple([value, call], ast.Load()), ast.Constant(0), ast.Load())
    for node in (*ast.walk(call), made.value, made.slice, made):
        ast.copy_location(node, value)
    return made


def _at(made: ast.stmt, place: ast.stmt) -> ast.stmt:
    """Move all of `made` to the first line of `place`."""
    for node in ast.walk(made):
        ast.copy_location(node, place)
    return made
