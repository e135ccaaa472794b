"""Measurements of the whole model: speed and numerics, both sides in the same run."""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *
from tcw.compiler.trace.records.session import Engine


class Timed(Part):
    """Seconds of something that ran several times."""

    median: Seconds
    spread: Seconds
    """max(3 MAD, 1%) of the median."""
    runs: Count


class SetSpeed(Part):
    """One input set."""

    call: Count
    eager_ms: Milliseconds
    compiled_ms: Milliseconds
    pairs: Count


class Speed(Record):
    """Eager and compiled, interleaved after warm-up. Times are medians per call."""

    eager_ms: Milliseconds
    compiled_ms: Milliseconds
    eager_mad_ms: Milliseconds
    compiled_mad_ms: Milliseconds
    speedup: Ratio
    """Median of the ratios eager/compiled, pair by pair."""
    noise: Noise
    """max(3 MAD of the pair ratios / their median, 1%): a difference within it does not count."""
    pairs: Count
    in_noise: bool
    compile_seconds: Seconds
    """Wall seconds of the first calls beyond their run time."""
    compile_cpu_seconds: Seconds | None = None
    sets: tuple[SetSpeed, ...] = ()
    threads: Count = 1
    what: str = "forward"
    """`forward`, or `forward + backward` in training."""
    device: str = ""
    """`cpu`, `cuda`: the device of the model and its inputs; "" in recordings that do not say."""
    eager_peak_bytes: Bytes | None = None
    """Peak of one call, if requested (`Settings.memory`)."""
    compiled_peak_bytes: Bytes | None = None
    compiled_again: Count = 0
    """Graphs compiled during the rounds: the compiled time then includes compile time."""
    outside_ms: Milliseconds | None = None
    """What a short compiled call does outside its compiled graphs (guards, wrappers, Python), in
    rounds of its own; None if not measured, as on a GPU."""
    alone_ms: Milliseconds | None = None
    """The whole call in those rounds, in which no eager call comes between."""


class EngineSpeed(Record):
    """Two engines compared, from the same rounds as their `Speed`."""

    first: str
    second: str
    first_ms: Milliseconds
    second_ms: Milliseconds
    speedup: Ratio
    """Median of the ratios first/second, round by round: above 1 if the second is faster."""
    noise: Noise
    """max(3 MAD of the ratios / their median, 1%)."""
    rounds: Count
    in_noise: bool


class OutputError(Part):
    call: Count
    path: str
    """The output or gradient: `out[0]`, `grad fc1.weight`."""
    max_abs: Error
    max_rel: Error
    note: str = ""
    """`nan in compiled only`, `shapes differ`, …"""


class AliasDifference(Part):
    """Memory that a result shares with another tensor when compiled and not in eager, or the other
    way round: "memory" if elements of both lie in the same place, "object" if both are the same
    tensor, "" if nothing."""

    call: Count
    path: str
    """The result: `out[0]`."""
    other: str
    """An earlier result, `inputs[0][1]`, `parameter fc1.weight` or `buffer seen`."""
    compiled: Literal["", "memory", "object"]
    eager: Literal["", "memory", "object"]


class RandomOperation(Part):
    """An operation of a compiled graph that draws random numbers."""

    name: str
    """`dropout`."""
    location: Location | None = None


class Numerics(Record):
    """Compiled outputs against eager ones, same inputs, same random state."""

    compared: Count
    """Number of tensors compared."""
    max_abs: Error | None
    max_rel: Error | None
    """max |a-b| / max(|b|, smallest normal), elementwise."""
    worst: tuple[OutputError, ...] = ()
    equal: bool = False
    """Whether they are bitwise equal."""
    within: bool | None = None
    """Whether `torch.testing.assert_close` accepts it with its defaults or else rounding explains
    each result that it rejects (docs/notes/precision.md); None if the two sides cannot be compared,
    which `note` explains."""
    compiled_off: Error | None = None
    """max |compiled - float64| of the results that `assert_close` rejects; None if it rejects none,
    or the call could not be made in float64."""
    eager_off: Error | None = None
    """max |eager - float64| of the same results."""
    rounding: Error | None = None
    """How far eager's own results move when its rounding is perturbed, at most: of the results that
    are wrong, or else of those that `assert_close` rejects."""
    note: str = ""
    aliases: tuple[AliasDifference, ...] = ()
    """Where the two sides share other memory; values are compared apart from that."""
    random: tuple[RandomOperation, ...] = ()
    """Operations that make them incomparable: Inductor draws other random numbers than eager."""


StageOfResult = Literal["", "capture", "autograd", "passes", "kernels"]


class WrongStage(Record):
    """What makes the results of a call wrong: it was run again through one stage more each time, in
    ATen, up to the first that shows the error."""

    call: Count
    engine: Engine
    result: str
    """The result that was looked at, as `OutputError.path`."""
    stage: StageOfResult = ""
    """"" if it was not found; `kernels` if every stage before is right."""
    right: tuple[StageOfResult, ...] = ()
    """The stages that were run, and are right."""
    graph: str = ""
    """Of the first wrong node; "" if no graph computes anything wrong."""
    node: str = ""
    operation: str = ""
    """Of the node, before it was decomposed."""
    location: Location | None = None
    kernel: str = ""
    """The first wrong one; "" if each is right by itself, or they were not compared."""
    reason: str = ""
    """Why something of this is unknown."""
    repro: TextHash = ""
    """A file that runs the call and shows the error."""
    reproduces: bool | None = None
    """Whether that file, run in a separate process, showed it; None if it did not end."""
    repro_note: str = ""
    """What it printed, or why there is no file."""
    seconds: Seconds = 0.0
