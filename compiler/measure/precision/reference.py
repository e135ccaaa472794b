"""The same calls in eager, from the same inputs, state and random numbers, for comparison."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from msgspec import structs

from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.calls.runs import (
    Generator,
    Model,
    PreparedRun,
    RandomState,
    Twin,
    prepare,
)
from tcw.compiler.measure.host import Host
from tcw.compiler.measure.precision.by_float64 import Distance, distance, in_float64
from tcw.compiler.measure.precision.numerics import Leaves, OutputComparison
from tcw.compiler.trace.records import Engine, Numerics, RandomOperation, Warned

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
        self._distances: list[Distance | None] = []
        """From float64, of each call with a result that `assert_close` rejects."""
        self._before = RandomState.now()
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
        self._before = RandomState.now()

    def compare(self, call: int, inputs: InputSet, run: PreparedRun, outputs: Any) -> None:
        """Make the call in eager and compare. Raises whatever eager raises."""
        after = RandomState.now()
        # a shared model's gradients are read before the next run clears them
        ours = run.result(outputs)
        with self.host.unrecorded():
            self.twin.rewind()
            self._before.restore()
            reference = prepare(self.twin.model, inputs, self.host.settings.grad)
            theirs = reference.result(reference())
            drew = self._before.drawn_since()
            left = after.drawn_since()
        pairs = [
            (list(leaves(ours.outputs)), list(leaves(theirs.outputs))),
            (ours.gradients, theirs.gradients),
            _changed_inputs(inputs, run, reference),
        ]
        accepted = [self._comparison.add(call, *pair) for pair in pairs]
        if not all(accepted):
            self._explain(drew, left)
        if not all(accepted) and self._unsteady is None:
            with self.host.unrecorded():
                self._unsteady = self._disagrees(call, inputs)
        if not all(accepted):
            # in float64 the generators give other numbers
            with self.host.unrecorded():
                self._distances.append(None if drew else self._distance(inputs, pairs))
        after.restore()

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

    def _disagrees(self, call: int, inputs: InputSet) -> bool:
        """Whether eager, from equal states and random numbers, gives two results: then its code
        keeps state that is not the model's, and the compiled call started from another one."""
        found = []
        try:
            for _ in range(2):
                self.twin.rewind()
                self._before.restore()
                run = prepare(self.twin.again(), inputs, self.host.settings.grad)
                found.append(list(leaves(run.result(run()).outputs)))
        except Exception:  # it worked before: calling it once more proves nothing
            return False
        return not OutputComparison().add(call, *found)

    def _distance(
        self, inputs: InputSet, pairs: Sequence[tuple[Leaves, Leaves]]
    ) -> Distance | None:
        """How far both sides are from the call in float64; None if it cannot be made there, or
        starts from another state than the calls that are compared."""
        try:
            again = prepare(self.twin.again(), inputs, self.host.settings.grad)
            steady = OutputComparison()
            steady.add(0, list(leaves(again())), pairs[0][1])
            wide = in_float64(self.twin.again(), inputs)
            if wide is None or self.twin.shared or not steady.record().equal:
                return None
            run = prepare(*wide, self.host.settings.grad)
            result = run.result(run())
            exact = dict((*leaves(result.outputs), *result.gradients))
            changed = leaves((run.positional, run.keyword), "inputs")
            exact |= {f"{path} after the call": value for path, value in changed}
            return distance(pairs, exact)
        except Exception:  # code for other dtypes: nothing is known
            return None

    def verdict(self) -> Numerics:
        """On all calls that were compared."""
        found = self._comparison.record()
        known = [one for one in self._distances if one is not None]
        if known:
            found = structs.replace(
                found,
                within=len(known) == len(self._distances) and all(one.right for one in known),
                compiled_off=max(one.compiled for one in known),
                eager_off=max(one.eager for one in known),
            )
        recorder = self.host.recorder
        if self._misread:
            places = _places(recorder.misread_numbers)
            note = f"{_MISREAD} ({places}); draw them outside the compiled function"
            found = structs.replace(found, note=note)
        elif self._incomparable:
            # a difference explained by different random numbers is not an error
            drawn = tuple(recorder.random_operations)
            drawer = "drawn by torch, not NumPy: " if self._incomparable is _NUMPY else ""
            note = "; ".join((random_note(drawn, drawer), self._incomparable))
            found = structs.replace(found, within=None, note=note, random=drawn)
        elif self._unsteady:
            found = structs.replace(found, within=None, note=_UNSTEADY)
        return found


def random_note(drawn: Sequence[RandomOperation], drawer: str = "") -> str:
    """`random: not comparable (dropout at model.py:12)`."""
    return f"random: not comparable ({drawer}{_places(drawn) or _UNKNOWN})"


def _places(drawn: Sequence[RandomOperation]) -> str:
    places = [
        f"{one.name} at {os.path.basename(one.location.file)}:{one.location.line}"
        if one.location
        else one.name
        for one in drawn[:_SHOWN]
    ]
    if len(drawn) > _SHOWN:
        places.append(f"{len(drawn) - _SHOWN} more")
    return ", ".join(places)


def _changed_inputs(
    inputs: InputSet, run: PreparedRun, reference: PreparedRun
) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Inputs that the model changed in place: those tensors are results too."""
    changed: tuple[list[tuple[str, Any]], list[tuple[str, Any]]] = ([], [])
    given = dict(leaves((inputs.positional, inputs.keyword), "inputs"))
    ours = dict(leaves((run.positional, run.keyword), "inputs"))
    for path, theirs in leaves((reference.positional, reference.keyword), "inputs"):
        before, mine = given.get(path), ours.get(path)
        if all(isinstance(value, torch.Tensor) for value in (before, mine, theirs)) and not all(
            _unchanged(before, value) for value in (mine, theirs)
        ):
            changed[0].append((f"{path} after the call", mine))
            changed[1].append((f"{path} after the call", theirs))
    return changed


def _unchanged(before: Any, after: Any) -> bool:
    """Compared bit for bit; what cannot be compared counts as unchanged."""
    try:
        if before.shape != after.shape:
            return False
        return bool(torch.equal(before, after)) or bool(
            ((before == after) | ((before != before) & (after != after))).all()
        )
    except (RuntimeError, NotImplementedError, TypeError):
        return True
