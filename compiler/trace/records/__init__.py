"""Everything that can be recorded: one tagged union, one file per stage."""

from __future__ import annotations

from compiler.trace.records.autograd import Partition, SavedValue
from compiler.trace.records.base import (
    SCHEMA_VERSION,
    Advice,
    Location,
    Part,
    Record,
    Size,
    TensorMeta,
    Text,
    TextHash,
)
from compiler.trace.records.capture import (
    Bytecode,
    Crossing,
    DdpBucket,
    DdpBuckets,
    DynamicSize,
    EagerCollective,
    EagerFallback,
    FailedGuard,
    FrameEnd,
    FrameSkipped,
    FrameStart,
    GraphBreak,
    Guard,
    Guards,
    NewGuard,
    Recompile,
    StackValue,
    Step,
)
from compiler.trace.records.decisions import Decided, Forbidden, FusionPair, Shown
from compiler.trace.records.graph import Graph, Node
from compiler.trace.records.inductor import (
    Buffer,
    CacheLookup,
    Collective,
    Collectives,
    CudagraphRecording,
    CudagraphSkip,
    FusionGroup,
    FusionGroups,
    FusionRound,
    Kernel,
    KernelBinary,
    KernelLine,
    Lowered,
    MemoryPlan,
    NestLoops,
    PassChange,
    Phase,
    SchedulerNode,
    Wrapper,
)
from compiler.trace.records.live import (
    CallTimes,
    Note,
    Refused,
    Resumed,
    Run,
    StageStart,
    Waiting,
    WhatIf,
)
from compiler.trace.records.loops import LoopLine
from compiler.trace.records.measure import (
    EngineSpeed,
    Numerics,
    OutputError,
    RandomOperation,
    SetSpeed,
    Speed,
    Timed,
)
from compiler.trace.records.profile import (
    Account,
    AccountLine,
    Bandwidth,
    CallProfile,
    CallTimeline,
    Ceilings,
    CompiledStep,
    EagerOperation,
    KernelNests,
    KernelPrecision,
    ModeRow,
    Moment,
    NestTime,
    OutputPrecision,
    Region,
    Trial,
)
from compiler.trace.records.session import (
    Argument,
    CallEnd,
    CallStart,
    End,
    Engine,
    EnginePart,
    Environment,
    Failure,
    HookStatus,
    LeftOut,
    NotInLog,
    Output,
    OutputCapped,
    Progress,
    Settings,
    Source,
    Stage,
    Start,
    Status,
    TorchSettings,
    Warned,
)

AnyRecord = (
    Start
    | Environment
    | TorchSettings
    | NotInLog
    | LeftOut
    | Source
    | Text
    | Progress
    | EnginePart
    | CallStart
    | CallEnd
    | Output
    | OutputCapped
    | Failure
    | Warned
    | End
    | FrameStart
    | FrameEnd
    | FrameSkipped
    | DdpBuckets
    | EagerCollective
    | Graph
    | GraphBreak
    | Guards
    | Recompile
    | EagerFallback
    | Step
    | Bytecode
    | Partition
    | PassChange
    | Lowered
    | SchedulerNode
    | FusionRound
    | FusionGroups
    | MemoryPlan
    | Kernel
    | KernelBinary
    | Wrapper
    | CacheLookup
    | CudagraphRecording
    | CudagraphSkip
    | Collectives
    | Phase
    | Decided
    | Speed
    | EngineSpeed
    | Numerics
    | Run
    | StageStart
    | Waiting
    | Resumed
    | Refused
    | Note
    | CallTimes
    | WhatIf
    | Account
    | CallProfile
    | CallTimeline
    | Ceilings
    | CompiledStep
    | EagerOperation
    | KernelNests
    | KernelPrecision
    | ModeRow
    | Region
    | Trial
)

__all__ = [
    "SCHEMA_VERSION", "Account", "AccountLine", "Advice", "AnyRecord", "Argument", "Bandwidth",
    "Buffer", "Bytecode", "CacheLookup", "CallEnd", "CallProfile", "CallStart", "CallTimeline",
    "CallTimes", "Ceilings", "Collective", "Collectives", "CompiledStep", "Crossing",
    "CudagraphRecording", "CudagraphSkip", "DdpBucket", "DdpBuckets", "Decided", "DynamicSize",
    "EagerCollective", "EagerFallback", "EagerOperation", "End", "Engine", "EnginePart",
    "EngineSpeed", "Environment", "FailedGuard", "Failure", "Forbidden", "FrameEnd", "FrameSkipped",
    "FrameStart", "FusionGroup", "FusionGroups", "FusionPair", "FusionRound", "Graph", "GraphBreak",
    "Guard", "Guards", "HookStatus", "Kernel", "KernelBinary", "KernelLine", "KernelNests",
    "KernelPrecision", "LeftOut", "Location", "LoopLine", "Lowered", "MemoryPlan", "ModeRow",
    "Moment", "NestLoops", "NestTime", "NewGuard", "Node", "NotInLog", "Note", "Numerics", "Output",
    "OutputCapped", "OutputError", "OutputPrecision", "Part", "Partition", "PassChange", "Phase",
    "Progress", "RandomOperation", "Recompile", "Record", "Refused", "Region", "Resumed", "Run",
    "SavedValue", "SchedulerNode", "SetSpeed", "Settings", "Shown", "Size", "Source", "Speed",
    "StackValue", "Stage", "StageStart", "Start", "Status", "Step", "TensorMeta", "Text",
    "TextHash", "Timed", "TorchSettings", "Trial", "Waiting", "Warned", "WhatIf", "Wrapper",
]  # fmt: skip
