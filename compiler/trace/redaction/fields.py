"""What a redacted trace keeps of each text field of each record."""

from __future__ import annotations

from enum import Enum


class Treatment(Enum):
    """What is done with a text."""

    KEPT = "kept"
    """Written by torch or by us, without a part of the user's: ids, versions, classes."""
    NAME = "name"
    """The user's own name: names of Python and torch stay, others are renamed everywhere."""
    OPERATION = "operation"
    """An operation: the same, if it is written with a namespace (`mylib.scale.default`)."""
    WORDS = "words"
    """A sentence, an expression or a derived name, in which the user's names are renamed."""
    VALUE = "value"
    """A value of the user's program: numbers with a fraction and strings go."""
    FILE = "file"
    """A path."""
    DROPPED = "dropped"
    """Made empty."""
    SOURCE = "source"
    """Hash of source text; only its number of lines is kept."""
    CODE = "code"
    """Hash of generated code: comments go, names are renamed."""
    CODE_PYTHON = "python"
    """The same, if comments begin with `#`."""
    BODY = "body"
    """The text that hashes stand for, and its hash."""


K, N, W, V, F, D = (
    Treatment.KEPT,
    Treatment.NAME,
    Treatment.WORDS,
    Treatment.VALUE,
    Treatment.FILE,
    Treatment.DROPPED,
)
T, C, P = Treatment.OPERATION, Treatment.CODE, Treatment.CODE_PYTHON


def _fields(kept: str = "", **kinds: Treatment) -> dict[str, Treatment]:
    return {**dict.fromkeys(kept.split(), K), **kinds}


FIELDS: dict[str, dict[str, Treatment]] = {
    "Start": _fields("tool_version python platform"),
    "Settings": _fields(
        "mode arch", file=F, model=N, inputs=V, overrides=W, mark_dynamic=N, as_tensors=N,
        torch_settings=V, edits=W, before_calls=V, repro=W, arguments=D, defaults_from=F,
    ),
    "Environment": _fields("torch triton compiler cpu vector gpu", variables=V),
    "HookStatus": _fields("name offers reason tried_on"),
    "LeftOut": _fields("records"),
    "TorchSettings": _fields(changed=V),
    "Source": _fields(file=F, text=Treatment.SOURCE),
    "Text": _fields(hash=Treatment.BODY, body=Treatment.BODY),
    "Progress": _fields(activity=W),
    "Argument": _fields(name=N, value=V),
    "TensorMeta": _fields("shape dtype stride device"),
    "CallEnd": _fields("compiled hits"),
    "Output": _fields(text=D),
    "Failure": _fields(
        "compile_id", doing=W, type=N, message=D, source_line=D, hint=W, traceback=D, evidence=D
    ),
    "Location": _fields(file=F, function=N),
    "Warned": _fields(message=W),
    "End": _fields(reason=W),
    "FrameStart": _fields("compile_id", function=N),
    "FrameEnd": _fields("compile_id", reason=W),
    "FrameSkipped": _fields("compile_id", function=N, reason=W),
    "EagerCollective": _fields("operation", group=N),
    "DdpBuckets": _fields("compile_id"),
    "DdpBucket": _fields(parameters=N),
    "Graph": _fields("id compile_id parent", code=P),
    "Node": _fields(
        "op", name=W, target=T, args=V, inputs=W, module=N, origins=W, made_by=W
    ),
    "GraphBreak": _fields(
        "compile_id gb type opcode url then", context=V, explanation=V, hints=V, source_line=D,
        reason=V,
    ),
    "Crossing": _fields(name=N, kind=W),
    "Advice": _fields("by edit", text=V, code=D, options=V, effect=V),
    "SourceChange": _fields(file=F, text=D),
    "FixTrial": _fields(
        finding=W, patch=D, settings=V, compile=K, before_calls=D, gone=W, new=W,
        differs=V, effect=W, reason=W,
    ),
    "Guards": _fields("compile_id", function=N),
    "Guard": _fields("kind", name=W, source=N, code=V, value=V, values=V, attribute=N),
    "DynamicSize": _fields("symbol", name=W, source=N),
    "SpecialisedSize": _fields(name=W),
    "Recompile": _fields("compile_id", source_line=D, function=N, reason=V),
    "FailedGuard": _fields(
        "entry kind", guard=V, source=N, name=W, expected=V, seen=V, source_line=D
    ),
    "EagerShare": _fields(function=N, operations=T),
    "EagerFallback": _fields("compile_id", reason=V, function=N),
    "Step": _fields(
        "compile_id opcode", function=N, argument=V, set_locals=N, deleted_locals=N, nodes=W,
        renamed=W,
    ),
    "StackValue": _fields(kind=W, node=W, source=N, value=V),
    "NewGuard": _fields("kind", name=W),
    "Bytecode": _fields(function=N, text=C),
    "Partition": _fields("compile_id joint forward backward partitioner"),
    "SavedValue": _fields(node=W, reason=W),
    "PassChange": _fields(
        "graph", name=W, before=P, after=P, added=W, removed=W, parent=W
    ),
    "Lowered": _fields("graph ir operations", node=W, target=T, fallback=W),
    "SchedulerNode": _fields(
        "graph name kind domain device", origins=W, label=W, reads=W, writes=W, touched=W,
        parts=W, loops=C,
    ),
    "FusionPair": _fields("graph", first=W, second=W, check=W, score_text=K, within=W),
    "FusionRound": _fields("graph", fused=W),
    "FusionGroups": _fields("graph"),
    "FusionGroup": _fields("kind", name=W, nodes=W, label=W),
    "MemoryPlan": _fields("graph", steps=W),
    "Buffer": _fields(name=W, reuses=W, alias_of=W, label=W),
    "Kernel": _fields("id graph", name=W, label=W, text=C, nodes=W, origins=W, no_line=W),
    "KernelLine": _fields(nodes=W),
    "LoopLine": _fields("variable size operation", result=W, arguments=W, node=W),
    "NestLoops": _fields(nodes=W, text=C),
    "KernelBinary": _fields(
        "kernel arch configuration", ttir=C, ttgir=C, llir=C, ptx=C, sass=C, error=D
    ),
    "Wrapper": _fields("graph", text=P),
    "CudagraphSkip": _fields("compile_id graph", reason=W),
    "CudagraphRecording": _fields("compile_id graph", part=W, reason=W, inputs=W),
    "Collectives": _fields("compile_id graph", operations=T),
    "Collective": _fields(arguments=V, origins=N),
    "CacheLookup": _fields("cache compile_id graph", key=D, missed=V, components=D),
    "Phase": _fields("compile_id", name=W),
    "Decided": _fields(
        "graph kind rule", id=W, default=W, choice=W, choices=W, reason=W, between=W,
        numbers=K, by=W, wanted=W, refused=W,
    ),
    "Shown": _fields(first=W, second=W, origins=W, if_fused=C, means=W),
    "Speed": _fields("what device"),
    "EngineSpeed": _fields("first second"),
    "Numerics": _fields(note=W),
    "OutputError": _fields(path=N, note=W),
    "AliasDifference": _fields(path=N, other=N),
    "RandomOperation": _fields(name=W),
    "Run": _fields(because=W),
    "StageStart": _fields("compile_id graph"),
    "Forbidden": _fields("rule", choice=W, reason=W),
    "Waiting": _fields("compile_id graph", why=W, decision=W),
    "Resumed": _fields(command=W, choice=W),
    "Refused": _fields("rule", id=W, choice=W, reason=W),
    "Note": _fields(on=W, text=D),
    "CallTimes": _fields(reason=W),
    "WhatIf": _fields("graph base_kernels run_kernels", reason=W, note=W),
    "AccountLine": _fields(name=K, what=W),
    "CallProfile": _fields("device", what=W, unmeasured=W),
    "Moment": _fields("of"),
    "Ceilings": _fields("device rates", note=W),
    "CompiledStep": _fields("id graph kernel", name=W, kernels=W),
    "EagerOperation": _fields("id of", operation=T, arguments=V, kernels=W, module=N),
    "KernelNests": _fields("graph kernel", reason=W),
    "WrongStage": _fields(
        "graph kernel", result=W, node=W, operation=T, reason=W, repro=D,
        repro_note=D,
    ),
    "KernelPrecision": _fields("graph kernel", reason=W, repro=D, repro_note=D),
    "OutputPrecision": _fields(node=W, note=W),
    "ModeRow": _fields("name engine mode", note=W, reason=W),
    "Region": _fields("id steps operations", label=W, modules=N),
    "Trial": _fields("group", id=W, words=V, options=V, diff=D, reason=W, command=D),
}  # fmt: skip
"""Struct -> its fields that can hold text -> what is done with them. A test names what is new."""
