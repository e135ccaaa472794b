"""The same calls in eager, from the same inputs, state and random numbers, for comparison."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import torch
from msgspec import structs
from torch.utils import _pytree as pytree

from tcw.compiler.capture.fallbacks import left_to_python
from tcw.compiler.control.safely import Safely
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.calls.runs import (
    Generator,
    Model,
    PreparedRun,
    RandomState,
    Twin,
    named_buffers,
    named_parameters,
    prepare,
)
from tcw.compiler.measure.host import Host
from tcw.compiler.measure.precision.aliases import Aliases, alias_differences, aliases_of
from tcw.compiler.measure.precision.arithmetic import widened
from tcw.compiler.measure.precision.judge import (
    accepted,
    at_most_largest,
    is_float,
    same,
    tensor_error,
)
from tcw.compiler.measure.precision.judged import CallVerdict, Leaves, judged
from tcw.compiler.measure.precision.perturbed import Perturbed
from tcw.compiler.measure.probes.eager_share import eager_shares
from tcw.compiler.trace.records import (
    AliasDifference,
    EagerShare,
    Engine,
    Numerics,
    OutputError,
    RandomOperation,
    Warned,
)

_WHY = (
    "torch.compile draws different random numbers from eager: "
    "torch._inductor.config.fallback_random = True makes them equal"
)
_NUMPY = (
    "torch.compile draws NumPy's random numbers with torch's generator: "
    "torch._dynamo.config.use_numpy_random_stream = True leaves them to NumPy, with a graph break"
)
_MISREAD = (
    "torch passes numbers that Python's random draws as float64 to code that Inductor compiles for "
    "float32"
)
_UNSTEADY = (
    "not comparable: eager returns a different result each time "
    "(the code keeps state outside the model)"
)
_UNKNOWN = "in a compiled graph that was not recorded"
_SHOWN = 3
_WORST = 16
_LIMIT_BYTES = 2 << 30
"""A float64 copy of the model and its inputs takes at most this much."""


@dataclass
class OutputComparison:
    """Collects the differences of all calls."""

    compared: int = 0
    equal: bool = True
    within: bool = True
    comparable: bool = True
    """False if results differ in number, kind, shape or dtype."""
    _errors: list[OutputError] = field(default_factory=list)

    def add(self, call: int, compiled: Leaves, eager: Leaves) -> bool:
        """Compare one call's outputs (or gradients); returns whether `assert_close` accepts them
        all."""
        within_before, self.within = self.within, True
        theirs = dict(eager)
        for path, value in compiled:
            if path not in theirs:
                self._differ(call, path, "returned by the compiled model only")
                continue
            self._pair(call, path, value, theirs.pop(path))
        for path in theirs:
            self._differ(call, path, "returned by eager only")
        accepted = self.within
        self.within = accepted and within_before
        return accepted

    def record(self) -> Numerics:
        """The verdict on everything that was added."""
        finite = [error for error in self._errors if not error.note or error.max_abs]
        worst = sorted(self._errors, key=lambda error: (bool(error.note), error.max_abs))[::-1]
        return Numerics(
            compared=self.compared,
            max_abs=max((error.max_abs for error in finite), default=None)
            if self.compared
            else None,
            max_rel=max((error.max_rel for error in finite), default=None)
            if self.compared
            else None,
            worst=tuple(error for error in worst if error.max_abs or error.note)[:_WORST],
            equal=self.equal and bool(self.compared),
            within=self.within if self.compared or not self.within else None,
        )

    def _differ(self, call: int, path: str, note: str, comparable: bool = False) -> None:
        self.equal = self.within = False
        self.comparable &= comparable
        self._errors.append(OutputError(call=call, path=path, max_abs=0.0, max_rel=0.0, note=note))

    def _pair(self, call: int, path: str, ours: Any, theirs: Any) -> None:
        if not isinstance(ours, torch.Tensor) or not isinstance(theirs, torch.Tensor):
            if isinstance(ours, torch.Tensor) or isinstance(theirs, torch.Tensor):
                self._differ(call, path, "a tensor on one side only")
            elif is_float(ours) and is_float(theirs):
                self._numbers(call, path, float(ours), float(theirs))
            elif not same(ours, theirs):
                self._differ(call, path, _values_differ(ours, theirs), comparable=True)
            return
        self.compared += 1
        if ours.shape != theirs.shape:
            self._differ(
                call, path, f"shapes differ: {tuple(ours.shape)}, eager {tuple(theirs.shape)}"
            )
            return
        note = ""
        if ours.dtype != theirs.dtype:
            note = f"dtypes differ: {ours.dtype}, eager {theirs.dtype}".replace("torch.", "")
            self.comparable = False
        elif ours.device != theirs.device:
            note = f"devices differ: {ours.device}, eager {theirs.device}"
        self._add(call, path, ours, theirs, note, close=not note and accepted(ours, theirs))

    def _numbers(self, call: int, path: str, ours: float, theirs: float) -> None:
        """Two floats, such as `loss.item()`."""
        self.compared += 1
        one, two = (torch.tensor(value, dtype=torch.float64) for value in (ours, theirs))
        self._add(call, path, one, two, "", accepted(ours, theirs))

    def _add(
        self, call: int, path: str, one: torch.Tensor, two: torch.Tensor, note: str, close: bool
    ) -> None:
        max_abs, max_rel, odd = tensor_error(one, two)
        note = note or odd
        if max_abs or note:
            self.equal = False
        if not close:
            self.within = False
        self._errors.append(
            OutputError(call=call, path=path, max_abs=max_abs, max_rel=max_rel, note=note)
        )


def _values_differ(ours: Any, theirs: Any) -> str:
    """`values differ: 3, eager 4`; without the values unless they are short numbers."""
    for one in (ours, theirs):
        if type(one) not in (int, bool, NoneType) or (one is not None and one.bit_length() > 63):
            return "values differ"
    return f"values differ: {ours}, eager {theirs}"


class _Again:
    """An eager call, made again from its start: the `Context` in which results are judged."""

    def __init__(self, reference: Reference, inputs: InputSet, drew: bool) -> None:
        self._reference = reference
        self._inputs = inputs
        self._drew = drew
        """Whether it draws random numbers."""

    def perturbed(self, seed: int) -> Mapping[str, Any]:
        """With its rounding perturbed."""
        return self._results(self._reference.twin.again(), self._inputs, Perturbed(seed))

    def exact(self) -> Mapping[str, Any]:
        """In float64; empty if that is impossible or draws other random numbers."""
        twin = self._reference.twin
        if self._drew or twin.shared:
            return {}
        try:
            wide = in_float64(twin.again(whole=True), self._inputs)
            return {} if wide is None else self._results(*wide)
        except Exception:  # code for other dtypes
            return {}

    def disagrees(self, eager: Leaves) -> bool:
        """Whether eager, from equal states and random numbers, gives another result: then its code
        keeps state that is not the model's, and the compiled call started from another one."""
        try:
            again = self._results(self._reference.twin.again(), self._inputs)
        except Exception:  # it worked before: calling it once more proves nothing
            return False
        return not all(path in again and accepted(again[path], value) for path, value in eager)

    def _results(
        self, model: Model, inputs: InputSet, during: AbstractContextManager[Any] | None = None
    ) -> dict[str, Any]:
        """What a call leaves, by path. `during`: what is active while it runs, but not while its
        inputs are copied."""
        self._reference.start.restore()
        run = prepare(model, inputs, self._reference.host.settings.grad)
        with during or nullcontext():
            outputs = run()
        result = run.result(outputs)
        found = dict((*leaves(result.outputs), *result.gradients))
        changed = {**_inputs(run), **_named(named_buffers(model))}
        return found | {_after(path): value for path, value in changed.items()}


class Reference:
    """The eager side of a recording: its own model, and the differences so far."""

    def __init__(self, model: Model, host: Host, engine: Engine = "inductor") -> None:
        self.host = host
        self.engine = engine
        self.twin = Twin(model)
        self._comparison = OutputComparison()
        self._incomparable = ""
        """Why the two sides drew different random numbers; "" if they did not."""
        self._misread = False
        """Whether a difference comes from numbers that torch passes in another dtype."""
        self._unsteady: bool | None = None
        """Whether eager disagrees with itself; None until a difference made that a question."""
        self._verdicts: list[CallVerdict] = []
        """On each call with a result that `assert_close` rejects."""
        self._aliases: list[AliasDifference] = []
        self.start = RandomState.now()
        if self.twin.shared:
            host.emit(
                Warned(
                    message=f"the model cannot be copied ({self.twin.shared}): eager and compiled "
                    "share it, and its state is put back between them"
                )
            )

    def remember(self) -> None:
        """Before the compiled call: keep the state and the generators that the eager call starts
        from."""
        self.twin.remember()
        self.start = RandomState.now()

    def compare(self, call: int, inputs: InputSet, run: PreparedRun, outputs: Any) -> None:
        """Make the call in eager and compare. Raises whatever eager raises."""
        after = RandomState.now()
        # a shared model's state is read before the next run changes it
        ours = run.result(outputs)
        buffers = named_buffers(run.model)
        if self.twin.shared:
            buffers = {name: value.clone() for name, value in buffers.items()}
        with self.host.unrecorded():
            self.twin.rewind()
            self.start.restore()
            reference = prepare(self.twin.model, inputs, self.host.settings.grad)
            theirs = reference.result(reference())
            drew = self.start.drawn_since()
            left = after.drawn_since()
        given = dict(leaves((inputs.positional, inputs.keyword), "inputs"))
        self._share(call, inputs)
        self._aliases += alias_differences(
            call, _aliases(run, ours.outputs), _aliases(reference, theirs.outputs)
        )
        pairs = [
            (list(leaves(ours.outputs)), list(leaves(theirs.outputs))),
            (ours.gradients, theirs.gradients),
            _changed(given, _inputs(run), _inputs(reference)),
            _changed(
                _named(self.twin.buffers()), _named(buffers), _named(named_buffers(reference.model))
            ),
        ]
        accepts = [self._comparison.add(call, *pair) for pair in pairs]
        if not all(accepts):
            self._explain(drew, left)
            with self.host.unrecorded(), self.twin.left_as_it_is():
                again = _Again(self, inputs, bool(drew))
                self._judge(call, pairs, again)
        after.restore()

    def _judge(self, call: int, pairs: Sequence[tuple[Leaves, Leaves]], again: _Again) -> None:
        """The verdict on a call of which `assert_close` rejects a result."""
        compiled, eager = ([leaf for pair in pairs for leaf in pair[side]] for side in (0, 1))
        if self._incomparable or self._unsteady:
            return
        self.host.begins(f"call {call}: eager again, with its rounding perturbed")
        if self._unsteady is None:
            self._unsteady = again.disagrees(eager)
        if not self._unsteady:
            self._verdicts.append(judged(compiled, eager, again))

    def _share(self, call: int, inputs: InputSet) -> None:
        """Record what runs in functions that torch left to Python."""
        wanted = left_to_python(self.host.recorder)
        if not wanted:
            return
        found: list[EagerShare] = []
        with self.host.unrecorded(), Safely(self.host.recorder, "what torch left to Python"):
            self.twin.rewind()
            self.start.restore()
            again = prepare(self.twin.again(), inputs, self.host.settings.grad)
            found += eager_shares(call, again, wanted)
        for share in found:
            self.host.emit(share)

    def _explain(self, drew: frozenset[Generator], left: frozenset[Generator]) -> None:
        """A difference of a call in which eager drew from these generators, and left those in
        another state than the compiled model did."""
        recorder = self.host.recorder
        # code outside compiled graphs draws the same numbers on both sides
        draws = bool(recorder.random_operations) or recorder.graphs_unknown
        if draws and "NumPy" in left:
            self._incomparable = _NUMPY
        elif draws and drew & {"torch", "random"} and self.engine == "inductor":
            # our engine draws through ATen, as eager does
            self._incomparable = self._incomparable or _WHY
        self._misread |= bool(recorder.misread_numbers) and self.engine == "inductor"

    def verdict(self) -> Numerics:
        """On all calls that were compared."""
        aliases = tuple(self._aliases[:_WORST])
        numerics = structs.replace(self._comparison.record(), aliases=aliases)
        if self._verdicts:
            wrong = {path for verdict in self._verdicts for path in verdict.wrong}
            within = [verdict.within for verdict in self._verdicts]
            numerics = structs.replace(
                numerics,
                within=False if False in within else None if None in within else True,
                worst=tuple(sorted(numerics.worst, key=lambda error: error.path not in wrong)),
                compiled_off=_most(verdict.compiled_off for verdict in self._verdicts),
                eager_off=_most(verdict.eager_off for verdict in self._verdicts),
                rounding=_most(verdict.rounding for verdict in self._verdicts),
                note="; ".join(dict.fromkeys(v.undecided for v in self._verdicts if v.undecided)),
            )
        recorder = self.host.recorder
        if self._misread:
            places = _places(recorder.misread_numbers)
            note = f"{_MISREAD} ({places}); draw them outside the compiled function"
            numerics = structs.replace(numerics, note=note)
        elif self._incomparable:
            # a difference explained by different random numbers is not an error
            drawn = tuple(recorder.random_operations)
            drawer = "drawn by torch, not NumPy: " if self._incomparable is _NUMPY else ""
            note = "; ".join((random_note(drawn, drawer), self._incomparable))
            numerics = structs.replace(numerics, within=None, note=note, random=drawn)
        elif self._unsteady:
            numerics = structs.replace(numerics, within=None, note=_UNSTEADY)
        return numerics


def random_note(drawn: Sequence[RandomOperation], drawer: str = "") -> str:
    """`random: not comparable (dropout at model.py:12)`."""
    return f"random: not comparable ({drawer}{_places(drawn) or _UNKNOWN})"


def _places(drawn: Sequence[RandomOperation]) -> str:
    places = [
        f"{operation.name} at {os.path.basename(operation.location.file)}:{operation.location.line}"
        if operation.location
        else operation.name
        for operation in drawn[:_SHOWN]
    ]
    if len(drawn) > _SHOWN:
        places.append(f"{len(drawn) - _SHOWN} more")
    return ", ".join(places)


def _most(values: Iterable[float | None]) -> float | None:
    known = [at_most_largest(value) for value in values if value is not None]
    return max(known, default=None)


def _aliases(run: PreparedRun, outputs: Any) -> Aliases:
    """What the outputs of a run share with each other, with its inputs and with its model."""
    state = {f"parameter {name}": value for name, value in named_parameters(run.model)}
    others = {**_inputs(run), **state, **_named(named_buffers(run.model))}
    return aliases_of(leaves(outputs), others)


def _inputs(run: PreparedRun) -> dict[str, Any]:
    return dict(leaves((run.positional, run.keyword), "inputs"))


def _named(buffers: Mapping[str, Any]) -> dict[str, Any]:
    return {f"buffer {name}": value for name, value in buffers.items()}


def _after(path: str) -> str:
    return f"{path} after the call"


def _changed(
    given: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[Leaves, Leaves]:
    """Inputs or buffers that the model changed in place: those tensors are results too."""
    changed: tuple[Leaves, Leaves] = ([], [])
    for path, eager in theirs.items():
        before, mine = given.get(path), ours.get(path)
        if all(isinstance(value, torch.Tensor) for value in (before, mine, eager)) and not all(
            _unchanged(before, value) for value in (mine, eager)
        ):
            changed[0].append((_after(path), mine))
            changed[1].append((_after(path), eager))
    return changed


def _unchanged(before: Any, after: Any) -> bool:
    """Compared bit for bit; what cannot be compared counts as unchanged."""
    try:
        return before.shape == after.shape and tensor_error(before, after) == (0.0, 0.0, "")
    except (RuntimeError, NotImplementedError, TypeError):
        return True


def in_float64(model: Model, inputs: InputSet) -> tuple[Model, InputSet] | None:
    """`model`, which is changed, and a copy of its inputs, with float64 for each float dtype; None
    if they would be too large."""
    module = isinstance(model, torch.nn.Module)
    tensors = [*model.state_dict().values()] if isinstance(model, torch.nn.Module) else []
    tensors += [value for _, value in leaves((inputs.positional, inputs.keyword))]
    if (
        sum(8 * tensor.numel() for tensor in tensors if isinstance(tensor, torch.Tensor))
        > _LIMIT_BYTES
    ):
        return None
    wide = pytree.tree_map(_widened, (inputs.positional, inputs.keyword))
    return (model.double() if module else model), InputSet(*wide)  # type: ignore[attr-defined]


def _widened(value: Any) -> Any:
    made = widened(value)
    return made if made is value else made.detach().requires_grad_(value.requires_grad)
