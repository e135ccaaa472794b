"""Records of the recording itself: start, environment, calls, output, failure, end."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from tcw.compiler.trace.records.base import *

Stage = Literal[
    "load",
    "capture",
    "autograd",
    "passes",
    "lowering",
    "fusion",
    "memory",
    "codegen",
    "build",
    "run",
]
GradMode = Literal["grad", "no-grad", "inference", "train"]
Engine = Literal["inductor", "tcw"]
Status = Literal["ok", "failed", "timeout", "crashed", "interrupted", "exited", "incomplete"]


REDACTED = "/redacted/"
"""The folder of all files in a redacted trace but those of torch and Python."""


class Settings(Part):
    """What the user asked for; enough to repeat the recording."""

    file: str
    model: str = ""
    """`--model` expression, "" for the file's `model`."""
    inputs: tuple[str, ...] = ()
    """`--inputs` expressions, one call each."""
    engine: Literal["inductor", "tcw", "both"] = "inductor"
    overrides: dict[str, str] = {}
    """Decision id -> choice, for the tcw engine."""
    mode: str = ""
    """torch.compile's mode; "" is its default."""
    dynamic: bool | None = None
    fullgraph: bool = False
    mark_dynamic: tuple[str, ...] = ()
    """`NAME:DIM` each: argument name (or position) and dimension."""
    as_tensors: tuple[str, ...] = ()
    """Number arguments passed as 0-dimensional tensors."""
    torch_settings: tuple[str, ...] = ()
    """Lines that change torch settings: `torch._dynamo.config.capture_scalar_outputs = True`."""
    edits: tuple[str, ...] = ()
    """Edits of the source, applied to an in-memory copy: `drop:15`, `drop:layers.py:15`."""
    changes: tuple[SourceChange, ...] = ()
    """Further changes of the source, applied to the same copy."""
    before_calls: tuple[str, ...] = ()
    """Lines that run before each call, with its arguments by name: `x = x.contiguous()`."""
    grad: GradMode = "grad"
    until: Stage = "run"
    """The last stage to run."""
    record: Literal["default", "steps"] = "default"
    device: Literal["cpu", "cuda"] = "cpu"
    arch: str = ""
    """`sm_80`, `sm_90`, `sm_100`: the GPU to predict code for, with `device="cuda"`."""
    cached: bool = False
    """Use torch's caches; else the recording compiles with its own empty ones."""
    profile: bool = False
    """After the calls, profile one of them, kernel by kernel."""
    verify: bool = False
    """Compare each kernel with the same operations in float64."""
    nests: bool = False
    """With `profile`: time each loop nest of kernels with several, which are rebuilt."""
    repro: str = ""
    """With `verify`: the kernel to write as a file; else the first wrong one."""
    profiled_call: Count = 1
    """The call to profile, from 1."""
    rounds: Count = 30
    """Rounds of a profile, at most."""
    memory: bool = False
    """Measure the peak memory of one call, compiled and eager."""
    timeout: Number | None = None
    """Seconds for the whole recording."""
    arguments: tuple[str, ...] = ()
    """`sys.argv[1:]` of a script."""
    script_call: bool = False
    """For a script: only call `profiled_call` of what it compiles, as a model."""
    program: bool = False
    """Recorded in the program's own process (`tcw run`, `tcw.record`): nothing was run for the
    recording, and nothing is timed or compared."""
    defaults_from: str = ""
    """The pyproject.toml that set defaults; "" if none did."""

    @property
    def redacted(self) -> bool:
        """Whether the trace is redacted, so that no command can name its file."""
        return self.file.startswith(REDACTED)


class Start(Record):
    """The first record of every trace."""

    schema_version: Index
    tool_version: str
    settings: Settings
    python: str
    platform: str
    pid: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    time: UnixTime
    """Unix time, seconds."""
    rank: Index | None = None
    """`RANK` of the process, as launchers set it; None without."""
    ranks: Count = 0
    """`WORLD_SIZE`, likewise; 0 without."""


class HookStatus(Part):
    """Whether this torch has what one of our hooks needs."""

    name: str
    available: bool
    offers: str
    """What is recorded through it, in words."""
    reason: str = ""
    """Why it is not available, e.g. `torch 2.16 has no Scheduler.can_fuse`."""
    tried_on: tuple[str, ...] = ()
    """torch and Python under which its tests passed: `2.13.0/3.14`."""


class Environment(Record):
    """The machine and the versions, once torch is imported."""

    torch: str
    triton: str = ""
    compiler: str = ""
    """First line of `g++ --version`; "" if there is none."""
    cpu: str = ""
    vector: str = ""
    """torch's CPU capability, e.g. `AVX512`."""
    threads: Count = 1
    gpu: str = ""
    hooks: tuple[HookStatus, ...] = ()
    variables: dict[str, str] = {}
    """torch setting -> the environment variable that it was taken from, with its value:
    `torch._inductor.config.max_autotune` -> `TORCHINDUCTOR_MAX_AUTOTUNE=1`."""


FactKind = Literal[
    "source", "calls", "run time", "machine", "skipped frames", "steps", "guards", "autograd",
    "lowering", "fusion", "memory", "decisions", "kernel builds", "output", "kernel lines",
    "kernels", "graphs", "phases", "caches",
]  # fmt: skip


class NotInLog(Record):
    """Kinds of facts that the source of this recording does not hold: that it has none of them
    says nothing. A trace of tcw has no such record; a log of torch has one or more."""

    kinds: tuple[FactKind, ...]


class LeftOut(Record):
    """The trace may not grow beyond a size (`tcw run --sample`): from here on less is written of
    each compile. The last such record, before the end, has the final counts."""

    level: Literal["all", "outline", "headlines", "end"]
    """What is still written: `outline` is without lowering, fusion, memory, code and times,
    `headlines` also without graphs, guards and kernels, `end` nothing but the end."""
    size: Bytes
    """The most bytes that the trace may have."""
    records: dict[str, Count] = {}
    """Kind of record -> how many were left out so far."""


class TorchSettings(Record):
    """torch settings that the user's file changed while it was loaded."""

    changed: dict[str, str]
    """`torch._inductor.config.cpp.simdlen` -> repr of its value."""


class Source(Record):
    """The full text of a source file that other records refer to, for reading elsewhere."""

    file: str
    text: TextHash


class Progress(Record):
    """What the recording is doing now, for the waiting user."""

    stage: Stage
    activity: str
    """A few words: `capturing forward`, `building 12 kernels`."""


class Argument(Part):
    """One argument of a call, described."""

    name: str
    """Parameter name of forward; `args[2]` if there is none."""
    tensor: TensorMeta | None = None
    value: str = ""
    """repr, cut at 200 characters, if it is not a tensor."""


class EnginePart(Record):
    """From here on, the records belong to this engine, until the next such record.

    Only a recording of both engines has them. Records before the first one, and sources, texts and
    the end, belong to both; ids (`0/0`, `k4`) are those of one part.
    """

    engine: Engine


class CallStart(Record):
    """The compiled model is about to be called; calls count from 1."""

    call: Count
    arguments: tuple[Argument, ...] = ()


class CallEnd(Record):
    call: Count
    seconds: Seconds
    """Wall time, including compilation."""
    compiled: tuple[str, ...] = ()
    """Ids of the compiles in this call."""
    hits: tuple[str, ...] = ()
    """Ids of earlier compiles that this call reused."""
    instructions: Count | None = None
    """Instructions of a call that compiled, of this process and of those that it started; None
    where the processor's counters are not to be had."""


class Output(Record):
    """Output of the user's program, as it arrived."""

    stream: Literal["stdout", "stderr"]
    text: str


class OutputCapped(Record):
    """From here on, this stream is no longer kept."""

    stream: Literal["stdout", "stderr"]
    cap_bytes: Bytes


class Failure(Record):
    """The user's model failed. torch.compile is blamed only after eager was tried."""

    doing: str
    """`loading`, `reading inputs`, `call 1, capture of 0/0`, `eager call 1`, …"""
    type: str
    """Name of the exception's class, or the signal."""
    message: str
    compile_id: str = ""
    location: Location | None = None
    """Deepest frame in the user's own files."""
    source_line: str = ""
    eager_fails: bool | None = None
    """True: eager raises too. None: not tried."""
    hint: str = ""
    """What to do, e.g. what the file has instead of a model."""
    traceback: TextHash = ""
    culprit: Literal["user", "torch", "tcw", "machine"] = "user"
    """`machine`: a full disk, a limit, a missing compiler."""
    evidence: str = ""
    """The full line that shows that the machine is the cause; "" if unknown."""

    @property
    def line(self) -> str:
        """`call 1: ValueError: …`: its first line, in at most 300 characters."""
        return f"{self.doing}: {self.type}: {self.message}".splitlines()[0][:300]


WarnedCode = Literal["", "own options", "not timed", "override unknown", "redacted"]


class Warned(Record):
    """Something that the recording lacks compared with what was asked, in words."""

    message: str
    code: WarnedCode = ""
    """What it is about, where a program acts on it: the file's own options of torch.compile were
    used, the calls were not timed, an override met no decision, texts were taken out."""
    asked: bool = False
    """Whether the user explicitly asked for what is missing: shown first."""


class End(Record):
    """The last record of a complete trace."""

    status: Status
    seconds: Seconds
    lines: Count = 0
    """Lines of the trace before this one; 0 if not counted."""
    calls: Count = 0
    """Number of compiled calls; a script's are counted without individual records."""
    exit_code: Whole | None = None
    signal: Index | None = None
    reason: str = ""
