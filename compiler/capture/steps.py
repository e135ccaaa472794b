"""Instruction steps: what Dynamo did with each bytecode instruction (`--record steps`).

A record holds only the changes since the previous step of the same frame, so its cost depends on
the instruction, not on the size of the graph or function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from tcw.compiler.capture.code_objects import function_location, instruction_location
from tcw.compiler.capture.frames import compiles_in_progress
from tcw.compiler.capture.symbolic_values import fx_node, stack_value
from tcw.compiler.control.hooks import RecordingHook, Uninstall, around_call, before_call, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import Bytecode, NewGuard, StackValue, Step
from tcw.compiler.trace.source_names import guard_name

SETS_LOCALS = ("STORE_", "DELETE_", "LOAD_FAST_AND_CLEAR", "MAKE_CELL", "COPY_FREE_VARS")


@dataclass
class _Seen:
    """The state of one frame after its previous step."""

    tx: Any
    number: int
    stack: list[Any] = field(default_factory=list)
    locals: dict[str, Any] = field(default_factory=dict)
    stored: bool = True
    """Whether the previous step may have changed the locals."""


@dataclass
class _Attempt:
    """One attempt at one compile id: its step count and the last node of each graph."""

    key: tuple[str, int]
    steps: int = 0
    depths: dict[int, _Seen] = field(default_factory=dict)
    numbers: WeakKeyDictionary[Any, int] = field(default_factory=WeakKeyDictionary)
    """Translator -> frame number. A generator's translator can come back."""
    frames: int = 0
    naming: tuple[Any, str] | None = None
    """The node that the previous step stores in a local, which may rename it, and its name."""
    last_nodes: dict[int, tuple[Any, Any]] = field(default_factory=dict)


class Stepper:
    """Turns the translator's state before each instruction into a record."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.attempts: list[_Attempt] = []
        """One per nested compile, the running compile last."""
        self.codes: dict[CodeType, str] = {}
        self.installed: list[tuple[Any, NewGuard]] = []
        """Guards since the last step, each with the set that it was added to."""

    def guarded(self, guards: Any, guard: Any) -> None:
        """Record that Dynamo added a guard to a set."""
        kind = guard.create_fn_name()
        new = NewGuard(kind=kind, name=guard_name(kind, guard.name))
        self.installed.append((guards, new))

    def before(self, tx: Any) -> None:
        ip = tx.instruction_pointer
        if ip is None:
            return
        attempt = self._attempt()
        instruction = tx.instructions[ip]
        if tx.f_code not in self.codes:
            self._bytecode(tx)
        depth = int(getattr(tx, "inline_depth", 0))
        seen = attempt.depths.get(depth)
        if seen is None or seen.tx is not tx:
            seen = _entered(attempt, depth, tx)
        popped, pushed = _stack_delta(seen, tx.stack)
        set_locals, deleted = _locals_delta(seen, tx.symbolic_locals)
        seen.stored = instruction.opname.startswith(SETS_LOCALS)
        renamed = _renamed(attempt)
        if instruction.opname.startswith("STORE_FAST") and tx.stack:
            node = fx_node(tx.stack[-1])
            attempt.naming = (node, node.name) if node is not None else None
        self.recorder.emit(
            Step(
                compile_id=attempt.key[0],
                attempt=attempt.key[1],
                step=attempt.steps,
                depth=depth,
                function=self.codes[tx.f_code],
                location=instruction_location(tx.f_code, instruction.positions, tx.lineno),
                ip=ip,
                opcode=instruction.opname,
                argument=_argument(tx, instruction),
                popped=popped,
                pushed=pushed,
                set_locals=set_locals,
                deleted_locals=deleted,
                nodes=_new_nodes(attempt, tx.output.graph),
                renamed=renamed,
                guards=len(tx.output.guards),
                new_guards=self._new_guards(tx.output.guards),
                frame=seen.number,
            )
        )
        attempt.steps += 1

    def _new_guards(self, guards: Any) -> tuple[NewGuard, ...]:
        """The guards added to this attempt's set since the previous step."""
        if not self.installed:
            return ()
        mine = tuple(new for owner, new in self.installed if owner is guards)
        nested = len(self.attempts) > 1
        self.installed = [one for one in self.installed if nested and one[0] is not guards]
        return mine

    def _attempt(self) -> _Attempt:
        """The running attempt. Drops nested attempts that are over."""
        key = (self.recorder.compile_id, self.recorder.attempt)
        level = compiles_in_progress() - 1
        del self.attempts[level + 1 :]
        if len(self.attempts) <= level or self.attempts[level].key != key:
            del self.attempts[level:]
            self.attempts += [_Attempt(key)] * (level + 1 - len(self.attempts))
        return self.attempts[level]

    def _bytecode(self, tx: Any) -> None:
        code: CodeType = tx.f_code
        location = function_location(code)
        self.codes[code] = user_name(code.co_name)
        self.recorder.source(location.file)
        text = "\n".join(
            f"{ip} {instruction.opname} {_argument(tx, instruction)}".rstrip()
            for ip, instruction in enumerate(tx.instructions)
        )
        self.recorder.emit(
            Bytecode(
                function=self.codes[code],
                location=location,
                text=self.recorder.text(text),
                lines=tuple(map(_line, tx.instructions)),
            )
        )


def _line(instruction: Any) -> int:
    positions = instruction.positions
    return (positions.lineno if positions is not None else instruction.starts_line) or 0


def _argument(tx: Any, instruction: Any) -> str:
    """The argument as text: a name, a constant, or a jump's target instruction."""
    if instruction.target is not None:
        target = tx.indexof.get(instruction.target)
        return "" if target is None else f"to {target}"
    value = instruction.argval
    # without a number: of no argument, or half of an instruction that Dynamo splits, such as
    # LOAD_FAST_LOAD_FAST (Python 3.13)
    if value is None or (instruction.arg is None and not isinstance(value, str)):
        return ""
    if instruction.opname == "LOAD_SPECIAL":
        text = instruction.argrepr or repr(value)
    elif isinstance(value, str):
        text = value if instruction.opname != "LOAD_CONST" else repr(value)
    elif isinstance(value, CodeType):
        text = f"<code {value.co_name}>"
    else:
        text = repr(value)
    return text[:200]


def _entered(attempt: _Attempt, depth: int, tx: Any) -> _Seen:
    """Start tracking a frame that is new at its depth or resumes after another frame ran there. Its
    state, and that of deeper frames, is recorded from scratch."""
    number = attempt.numbers.get(tx)
    if number is None:
        number = attempt.numbers[tx] = attempt.frames
        attempt.frames += 1
    for deeper in [one for one in attempt.depths if one > depth]:
        del attempt.depths[deeper]
    seen = attempt.depths[depth] = _Seen(tx, number)
    return seen


def _stack_delta(seen: _Seen, stack: list[Any]) -> tuple[int, tuple[StackValue, ...]]:
    before = seen.stack
    shared = 0
    for old, new in zip(before, stack, strict=False):
        if old is not new:
            break
        shared += 1
    seen.stack = list(stack)
    return len(before) - shared, tuple(stack_value(item) for item in stack[shared:])


def _locals_delta(
    seen: _Seen, symbolic_locals: dict[str, Any]
) -> tuple[dict[str, StackValue], tuple[str, ...]]:
    before = seen.locals
    if not seen.stored and len(before) == len(symbolic_locals):
        return {}, ()
    changed = {
        name: stack_value(variable)
        for name, variable in symbolic_locals.items()
        if before.get(name) is not variable
    }
    deleted = tuple(name for name in before if name not in symbolic_locals)
    if changed or deleted:
        seen.locals = dict(symbolic_locals)
    return changed, deleted


def _renamed(attempt: _Attempt) -> dict[str, str]:
    """Dynamo renames a node after the local that stores its value."""
    naming, attempt.naming = attempt.naming, None
    if naming is None or naming[0].name == naming[1]:
        return {}
    return {naming[1]: naming[0].name}


def _new_nodes(attempt: _Attempt, graph: Any) -> tuple[str, ...]:
    """Nodes appended to the graph since the previous step."""
    _, last = attempt.last_nodes.get(id(graph), (graph, None))
    newest: list[Any] = []
    for node in reversed(graph.nodes):
        if node is last:
            break
        newest.append(node)
    if newest:
        attempt.last_nodes[id(graph)] = (graph, newest[0])
        if last is not None and getattr(last, "_erased", False):
            return ()
    return tuple(node.name for node in reversed(newest))


def install(recorder: Recorder) -> Uninstall:
    if recorder.settings.record != "steps":
        return lambda: None

    from torch._dynamo.symbolic_convert import InstructionTranslatorBase
    from torch._guards import GuardsSet

    stepper = Stepper(recorder)
    safely = Safely(recorder, "an instruction step")

    def step(translator: Any) -> None:
        if not recorder.quiet and recorder.compile_id:
            with safely:
                stepper.before(translator)

    @contextmanager
    def adding(guards: Any, guard: Any, *_: Any, **__: Any) -> Iterator[None]:
        before = len(guards)
        yield
        if not recorder.quiet and recorder.compile_id and len(guards) > before:
            with safely:
                stepper.guarded(guards, guard)

    return undo_all(
        before_call(InstructionTranslatorBase, "step", step),
        around_call(GuardsSet, "add", adding),
    )


HOOK = RecordingHook(
    name="instruction steps",
    offers="each bytecode instruction that Dynamo walks: stack, locals, nodes (--record steps)",
    needs=(
        "torch._dynamo.symbolic_convert:InstructionTranslatorBase.step",
        "torch._guards:GuardsSet.add(guard)",
    ),
    install=install,
    stage="capture",
    test="capture/test_steps.py",
)
