"""The command line that repeats a recording, ready to paste."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from msgspec import structs

from tcw.compiler.protocol.torch_settings import DEFAULT_MODULE
from tcw.compiler.trace.records import Settings

FILE = "FILE"
"""Replaces a file that the trace does not name."""
_GRADS = {"no-grad": "--no-grad", "inference": "--inference-mode", "train": "--train"}


def command_line(
    verb: str, settings: Settings, options: Sequence[str] = (), *, overrides: bool = True
) -> str:
    """`tcw profile model.py --train …`, quoted for a shell, with further options.

    `overrides`: including overruled decisions, one by one. Of a redacted trace:
    `tcw profile FILE …`, without what was renamed.
    """
    if settings.redacted:
        settings = structs.replace(
            settings, file=FILE, model="", inputs=(), overrides={}, mark_dynamic=(), as_tensors=(),
            torch_settings=(), edits=(), arguments=(),
        )  # fmt: skip
    words = ["tcw", verb, near(settings.file)]
    words += ["--model", settings.model] if settings.model else []
    words += [word for text in settings.inputs for word in ("--inputs", text)]
    words += ["--engine", settings.engine] if settings.engine != "inductor" else []
    words += ["--mode", settings.mode] if settings.mode else []
    words += [_GRADS[settings.grad]] if settings.grad in _GRADS else []
    words += ["--fullgraph"] if settings.fullgraph else []
    if settings.dynamic is not None:
        words.append("--dynamic" if settings.dynamic else "--no-dynamic")
    words += [word for mark in settings.mark_dynamic for word in ("--mark-dynamic", mark)]
    words += [word for name in settings.as_tensors for word in ("--as-tensor", name)]
    for line in settings.torch_settings:
        words += ["--set", line.removeprefix(f"{DEFAULT_MODULE}.")]
    words += [word for edit in settings.edits for word in ("--edit", edit)]
    if overrides:
        for id, choice in settings.overrides.items():
            words += ["--override", f"{id}={choice}"]
    if settings.device == "cuda" and verb != "profile":
        words += ["--device", "cuda", "--arch", settings.arch]
    if settings.profiled_call != 1:
        words += ["--call", str(settings.profiled_call)]
    words += options
    words += ["--", *settings.arguments] if settings.arguments else []
    return shlex.join(words)


def near(file: str) -> str:
    """A path as typed here: relative to the current folder if it is below it. "" for none."""
    path = os.path.relpath(file) if file else file
    return file if path.startswith(os.pardir) else path
