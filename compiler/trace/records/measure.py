"""Measurements of the whole model: speed and numerics, both sides in the same run."""

from __future__ import annotations

from compiler.trace.records.base import Location, Part, Record


class Timed(Part):
    """Seconds of something that ran several times."""

    median: float
    spread: float
    """max(3 MAD, 1%) of the median."""
    runs: int


class SetSpeed(Part):
    """One input set."""

    call: int
    eager_ms: float
    compiled_ms: float
    pairs: int


class Speed(Record):
    """Eager against compiled, interleaved after warm-up. Times are medians, per call."""

    eager_ms: float
    compiled_ms: float
    eager_mad_ms: float
    compiled_mad_ms: float
    speedup: float
    """Median of the ratios eager/compiled, pair by pair."""
    noise: float
    """max(3 MAD of the pair ratios / their median, 1%): a difference inside it is none."""
    pairs: int
    in_noise: bool
    compile_seconds: float
    """Wall seconds of the first calls beyond their run time."""
    compile_cpu_seconds: float | None = None
    sets: tuple[SetSpeed, ...] = ()
    threads: int = 1
    what: str = "forward"
    """`forward`, or `forward + backward` in training."""
    device: str = ""
    """`cpu`, `cuda`: where the model and its inputs are; "" in recordings that do not say."""
    eager_peak_bytes: int | None = None
    """The most that one call takes, where that was asked for (`Settings.memory`)."""
    compiled_peak_bytes: int | None = None
    compiled_again: int = 0
    """Graphs compiled during the rounds: the compiled time then includes compile time."""


class EngineSpeed(Record):
    """Two engines against each other, from the rounds that also gave each its `Speed`."""

    first: str
    second: str
    first_ms: float
    second_ms: float
    speedup: float
    """Median of the ratios first/second, round by round: above 1 the second is faster."""
    noise: float
    """max(3 MAD of the ratios / their median, 1%)."""
    rounds: int
    in_noise: bool


class OutputError(Part):
    call: int
    path: str
    """Which output or gradient: `out[0]`, `grad fc1.weight`."""
    max_abs: float
    max_rel: float
    note: str = ""
    """`nan in compiled only`, `shapes differ`, …"""


class RandomOperation(Part):
    """An operation of a compiled graph that draws random numbers."""

    name: str
    """`dropout`."""
    location: Location | None = None


class Numerics(Record):
    """Compiled outputs against eager ones, same inputs, same random state."""

    compared: int
    """Tensors that were compared."""
    max_abs: float | None
    max_rel: float | None
    """max |a-b| / max(|b|, smallest normal), elementwise."""
    worst: tuple[OutputError, ...] = ()
    equal: bool = False
    """Bit for bit."""
    within: bool | None = None
    """Whether `torch.testing.assert_close` accepts it with its defaults; None where the two sides
    cannot be compared, which `note` explains."""
    note: str = ""
    random: tuple[RandomOperation, ...] = ()
    """What makes them incomparable: Inductor draws other random numbers than eager."""
