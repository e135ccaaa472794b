"""One run of a model, compiled or eager, from the same inputs, state and random numbers."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.trace.records import Engine
from tcw.compiler.trace.records.profile import CallPhase
from tcw.compiler.trace.records.session import GradMode

Model = Callable[..., Any]

Prepared = Callable[[], object]
"""A run that is ready to be timed: its inputs are already copied."""

Prepare = Callable[[], Prepared]
"""Prepares one run, untimed."""


@dataclass
class RunResult:
    """What one run produced."""

    outputs: Any
    gradients: list[tuple[str, Any]] = field(default_factory=list)
    """Of parameters and inputs, by path; only in training."""


def grad_mode(mode: GradMode) -> AbstractContextManager[Any]:
    """The context in which the user asked the model to run."""
    if mode == "no-grad":
        context: AbstractContextManager[Any] = torch.no_grad()
    elif mode == "inference":
        context = torch.inference_mode()
    else:
        context = nullcontext()
    return context


@dataclass(frozen=True)
class RunPiece:
    """A part of a run that is measured by itself; a run's pieces are called in order."""

    phase: CallPhase
    part: Literal["model", "loss", "gradients", "optimizer"]
    action: Callable[[], object]


@dataclass
class PreparedRun:
    """Inputs are copied and gradients cleared; calling it is what is recorded or timed."""

    model: Model
    positional: tuple[Any, ...]
    keyword: dict[str, Any]
    mode: GradMode
    passed: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    """What the caller passes, if lines that run before the call replace arguments."""

    def __call__(self) -> Any:
        """The outputs; in training a backward has run from a loss made of them."""
        with grad_mode(self.mode):
            outputs = self.model(*self.positional, **self.keyword)
            if self.mode == "train":
                loss_of(outputs).backward()
        return outputs

    def pieces(self) -> list[RunPiece]:
        """The run in pieces: together they do the same as calling it, except for setting the grad
        mode."""
        made: list[Any] = []
        training = self.mode == "train"

        def forward() -> None:
            made.append(self.model(*self.positional, **self.keyword))

        run_pieces = [RunPiece("forward" if training else "", "model", forward)]
        if training:
            run_pieces.append(RunPiece("forward", "loss", lambda: made.append(loss_of(made[0]))))
            run_pieces.append(RunPiece("backward", "model", lambda: made[1].backward()))
        return run_pieces

    def result(self, outputs: Any) -> RunResult:
        """The outputs with the gradients that the run left."""
        if self.mode != "train":
            return RunResult(outputs)
        gradients = [
            (f"grad {name}", parameter.grad)
            for name, parameter in named_parameters(self.model)
            if parameter.grad is not None
        ]
        for path, value in leaves((self.positional, self.keyword), "inputs"):
            if isinstance(value, torch.Tensor) and value.is_leaf and value.grad is not None:
                gradients.append((f"grad {path}", value.grad))
        return RunResult(outputs, gradients)


def prepare(model: Model, inputs: InputSet, mode: GradMode) -> PreparedRun:
    """Copy the inputs and clear the parameters' gradients."""
    positional, keyword = inputs.fresh()
    if mode == "train":
        for _, parameter in named_parameters(model):
            parameter.grad = None
    return PreparedRun(model, positional, keyword, mode)


def prepared(model: Model, inputs: InputSet, mode: GradMode) -> Callable[[], PreparedRun]:
    """For timing: each call copies the inputs again."""
    return lambda: prepare(model, inputs, mode)


def named_parameters(model: Model) -> list[tuple[str, Any]]:
    """Parameters by name, as the user knows them; none for a function."""
    if not isinstance(model, torch.nn.Module):
        return []
    return [(name.removeprefix("_orig_mod."), found) for name, found in model.named_parameters()]


def named_buffers(model: Model) -> dict[str, torch.Tensor]:
    """Buffers by name, as the user knows them; none for a function."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {name.removeprefix("_orig_mod."): value for name, value in model.named_buffers()}


def loss_of(outputs: Any) -> torch.Tensor:
    """A scalar to run the backward from: `outputs.loss`, else the sum of the float outputs'
    means."""
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else getattr(outputs, "loss", None)
    if isinstance(loss, torch.Tensor) and loss.numel() == 1 and loss.requires_grad:
        return loss.reshape(())
    means = [
        (found.abs() if found.is_complex() else found).float().mean()
        for _, found in leaves(outputs)
        if isinstance(found, torch.Tensor) and found.requires_grad
    ]
    if not means:
        raise UserError(
            "--train needs an output that requires grad, and this model returns none",
            type="NoGradient",
            hint="a parameter or an input has to require grad, and the output must not be detached",
            doing="making a loss",
        )
    return sum(means[1:], start=means[0])


Generator = Literal["torch", "random", "NumPy"]


@dataclass(frozen=True)
class RandomState:
    """The random generators that a model may draw from."""

    torch_cpu: torch.Tensor
    torch_cuda: list[torch.Tensor]
    python: Any
    numpy: Any

    @classmethod
    def now(cls) -> RandomState:
        numpy = sys.modules.get("numpy")
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        return cls(
            torch.get_rng_state(),
            torch.cuda.get_rng_state_all() if cuda else [],
            random.getstate(),
            numpy.random.get_state() if numpy is not None else None,
        )

    def restore(self) -> None:
        torch.set_rng_state(self.torch_cpu)
        if self.torch_cuda:
            torch.cuda.set_rng_state_all(self.torch_cuda)
        random.setstate(self.python)
        numpy = sys.modules.get("numpy")
        if self.numpy is not None and numpy is not None:
            numpy.random.set_state(self.numpy)

    def drawn_since(self) -> frozenset[Generator]:
        """The generators that have been used since."""
        now = RandomState.now()
        generators: set[Generator] = set()
        if not torch.equal(now.torch_cpu, self.torch_cpu) or any(
            not torch.equal(a, b) for a, b in zip(now.torch_cuda, self.torch_cuda, strict=False)
        ):
            generators.add("torch")
        if now.python != self.python:
            generators.add("random")
        if self.numpy is not None and _numpy_words(now.numpy) != _numpy_words(self.numpy):
            generators.add("NumPy")
        return frozenset(generators)


def _numpy_words(state: Any) -> tuple[Any, ...]:
    """What `numpy.random.get_state` returns, comparable."""
    return tuple(one.tobytes() if hasattr(one, "tobytes") else one for one in state)


class Twin:
    """The model that runs eagerly: a copy, so that each side has its own state.

    A model that cannot be copied is shared; its parameters and buffers are then restored before the
    eager run.
    """

    def __init__(self, model: Model) -> None:
        self.shared = ""
        """Why it is not a copy; "" if it is."""
        self.model = model
        self._before: dict[str, torch.Tensor] = {}
        self._start: Any = None
        if isinstance(model, torch.nn.Module):
            try:
                self.model = copy.deepcopy(model)
            except Exception as error:
                self.shared = f"{type(error).__name__}: {error}"

    def remember(self) -> None:
        """Before the compiled run: keep the state that the eager run starts from."""
        if self.shared and isinstance(self.model, torch.nn.Module):
            self._before = {
                name: value.detach().clone() for name, value in self.model.state_dict().items()
            }

    def rewind(self) -> None:
        """Before the eager run: restore it, or keep a copy of it."""
        if self._before and isinstance(self.model, torch.nn.Module):
            with torch.no_grad():
                for name, value in self.model.state_dict().items():
                    value.copy_(self._before[name])
        elif not self.shared and isinstance(self.model, torch.nn.Module):
            self._start = _with_parameters_of(self.model)

    def again(self, whole: bool = False) -> Model:
        """A model in the state that the eager run started from, to call once more; itself if it is
        no module. `whole`: with parameters of its own."""
        if self.shared:
            self.rewind()
        if self._start is None:
            return self.model
        copied: Model = copy.deepcopy(self._start) if whole else _with_parameters_of(self._start)
        return copied

    def buffers(self) -> dict[str, torch.Tensor]:
        """Those at the start of the eager run, by name."""
        if self._before:
            return self._before
        return named_buffers(self._start) if self._start is not None else {}

    @contextmanager
    def left_as_it_is(self) -> Iterator[None]:
        """Calls inside the block do not change a shared model's state."""
        state: dict[str, torch.Tensor] = {}
        if self.shared and isinstance(self.model, torch.nn.Module):
            state = {name: value.clone() for name, value in self.model.state_dict().items()}
        try:
            yield
        finally:
            if isinstance(self.model, torch.nn.Module):
                with torch.no_grad():
                    for name, value in state.items():
                        self.model.state_dict()[name].copy_(value)


def _with_parameters_of(model: torch.nn.Module) -> torch.nn.Module:
    """A copy with buffers and other state of its own, and the same parameters."""
    return copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})


def original_of(model: Model) -> Model:
    """The arguments of torch.compile, if the user's file compiles the model itself."""
    inner = getattr(model, "_orig_mod", None)
    if inner is None:
        inner = getattr(model, "_torchdynamo_orig_callable", None)
    return model if inner is None else inner


@dataclass
class CompiledModel:
    """A model as one engine compiled it."""

    engine: Engine
    model: Model
    calls: Sequence[tuple[float, float]]
    """Wall and CPU seconds of each recorded call, compilation included."""


def device_of(model: Model, sets: Sequence[InputSet]) -> str:
    """`cuda` if any parameter or input is on a GPU, else `cpu`."""
    tensors = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    tensors += [
        value
        for input_set in sets
        for _, value in leaves((input_set.positional, input_set.keyword))
    ]
    on_gpu = any(isinstance(value, torch.Tensor) and value.is_cuda for value in tensors)
    return "cuda" if on_gpu else "cpu"
