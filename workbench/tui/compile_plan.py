"""Compiling a recorded file again: what would run, looked through before the reader is asked.

A trace can be a stranger's, and names the file, the expression of the model, inputs, edits and
settings of torch. `reviewed` turns them into a `CompilePlan`, or refuses: a `CompilePlan` is what
the reader is shown, and it alone is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from msgspec import structs

from tcw.compiler.protocol.edits import KINDS, EditError, read_edit
from tcw.compiler.protocol.torch_settings import SettingError, read_setting
from tcw.compiler.trace.plain_file import TooLarge, read_plain
from tcw.compiler.trace.records import Settings
from tcw.viewers.recording import Recording, lines_of
from tcw.viewers.words import bytes_text
from tcw.workbench.request.files import python_file
from tcw.workbench.request.options import MODES
from tcw.workbench.worker.specification import (
    Argument,
    SpecificationError,
    TensorSpecification,
    parse_inputs,
)

MOST_BYTES = 16 << 20
"""A larger file is not a model's source."""
MOST_CHARACTERS = 20_000
"""A longer request of a trace is refused: nobody would read it before saying yes."""
LARGE = 1 << 30
"""Bytes of inputs that are pointed out."""


@dataclass(frozen=True)
class Allowed:
    """What the reader allowed on the command line of `tcw open`."""

    file: Path | None = None
    """Compile this file again, in place of the one that the trace names."""
    model: str = ""
    """An expression of their own."""
    yes: bool = False
    """Do not ask."""
    view_only: bool = False
    """Run nothing."""


class RunRefused(Exception):
    """Nothing is run; the message says why, and what to do."""


@dataclass(frozen=True)
class PlanLine:
    """What would run, or how."""

    name: str
    value: str
    note: str = ""
    warns: bool = False


@dataclass(frozen=True)
class CompilePlan:
    """A compile that may be started."""

    settings: Settings
    lines: tuple[PlanLine, ...] = ()
    """From the trace; none where the settings are of the reader's own command line, or of an
    earlier yes."""


def _cut(words: str) -> str:
    """For a message of what is not run."""
    return words if len(words) <= 300 else f"{words[:300]}… ({len(words):,} characters)"


def plain_name(model: str) -> bool:
    """Whether a trace's `--model` may be run: the file's `model`, or another name in it."""
    return not model or model.isidentifier()


def reviewed(wanted: Settings, recording: Recording, allowed: Allowed) -> CompilePlan:
    """What would run for settings that come from the recording. Raises `RunRefused`."""
    if allowed.view_only:
        raise RunRefused("Compiling again is off: this was opened with --view-only")
    if wanted.program:
        raise RunRefused("This is a recording of a program in its own process: run that again")
    if wanted.redacted and allowed.file is None:
        raise RunRefused(
            "This trace is redacted and does not name its file. To compile it: "
            f"tcw open TRACE --file FILE{' --model EXPR' if wanted.model else ''}"
        )
    if not allowed.model and not plain_name(wanted.model):
        raise RunRefused(
            f"The trace asks for the model {_cut(repr(wanted.model))}. An expression is run only "
            "where it is your own: tcw open TRACE --model EXPR. A trace may ask for a plain name"
        )
    file, text = _file(allowed.file or Path(wanted.file), allowed)
    differs = _differs(recording.source(wanted.file), text)
    if differs and allowed.file is None:
        raise RunRefused(
            f"{file} is not the file that was recorded: {differs}. To compile it all the same: "
            f"tcw open TRACE --file {file}"
        )
    settings: Settings = structs.replace(
        _checked(wanted), file=str(file), model=allowed.model or wanted.model
    )
    listed = tuple(plan_lines(settings, wanted, allowed, differs))
    if sum(len(line.value) + len(line.note) for line in listed) > MOST_CHARACTERS:
        raise RunRefused(
            "The trace asks for more than a person can review: compile the file with tcw step"
        )
    return CompilePlan(settings, listed)


def _file(named: Path, allowed: Allowed) -> tuple[Path, bytes]:
    """Where the file really is, and its text."""
    try:
        file, here = Path(os.path.realpath(named)), Path(os.path.realpath("."))
        python_file(file)
        text = read_plain(file, MOST_BYTES)
    except click.UsageError as error:
        raise RunRefused(_cut(error.format_message())) from error
    except TooLarge as error:
        raise RunRefused(str(error)) from error
    except OSError as error:
        raise RunRefused(_cut(f"{named}: {error.strerror or error}")) from error
    except ValueError as error:
        raise RunRefused(f"{_cut(repr(str(named)))} is not a file name") from error
    if allowed.file is None and not file.is_relative_to(here):
        raise RunRefused(
            f"{file} is not in this folder, {here}. To compile it all the same: "
            f"tcw open TRACE --file {file}"
        )
    return file, text


def _differs(recorded: list[str], text: bytes) -> str:
    """How the text is not the recorded one; "" if it is."""
    if not recorded:
        return "the trace has no text of it to compare"
    now = lines_of(text.decode("utf-8", "surrogateescape"))
    return "" if now == recorded else "its text differs from the recorded one"


def _checked(wanted: Settings) -> Settings:
    """As a command line could have asked for it, spelled as it will be run."""
    try:
        torch_settings = tuple(read_setting(line).code for line in wanted.torch_settings)
        edits = [read_edit(edit) for edit in wanted.edits]
        for text in wanted.inputs:
            parse_inputs(text)
    except (SettingError, EditError, SpecificationError) as error:
        raise RunRefused(_cut(f"The trace asks for what cannot be read: {error}")) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise RunRefused("The trace asks for what cannot be read") from error
    strange = [str(edit) for edit in edits if edit.kind not in KINDS or _leads_out(edit.file)]
    strange += [wanted.mode] if wanted.mode not in ("", *MODES) else []
    strange += [wanted.arch] if not re.fullmatch(r"(sm_\d{1,4}a?)?", wanted.arch, re.ASCII) else []
    if strange:
        raise RunRefused(
            f"The trace asks for {_cut(strange[0])}, which no command line can ask for"
        )
    done: Settings = structs.replace(
        wanted, torch_settings=torch_settings, edits=tuple(map(str, edits))
    )
    return done


def _leads_out(file: str) -> bool:
    """Whether an edit's file is not in the folder of the file that is run."""
    return os.path.isabs(file) or file.split(os.sep)[0] == os.pardir


def plan_lines(
    settings: Settings, wanted: Settings, allowed: Allowed, differs: str
) -> Iterator[PlanLine]:
    """All that would run and how, what runs first; the reader's own words are marked."""
    recorded = "" if settings.file == wanted.file else f"; recorded as {wanted.file}"
    whose = "yours, by --file: " if allowed.file is not None else ""
    yield PlanLine(
        "file",
        settings.file,
        f"{whose}{differs or 'its text is the recorded one'}{recorded}",
        warns=bool(differs),
    )
    yield PlanLine(
        "folder", os.path.dirname(settings.file), "what the file imports is looked for here"
    )
    whose = "yours, by --model" if allowed.model else "a name in the file"
    yield PlanLine("model", settings.model or "model", whose)
    for text in settings.inputs:
        size = sum(map(_bytes, _arguments(text)))
        yield PlanLine("inputs", text, bytes_text(size) if size else "", warns=size >= LARGE)
    if not settings.inputs:
        yield PlanLine("inputs", "those of the file")
    for argument in settings.arguments:
        yield PlanLine("argument", argument, "of the script, in sys.argv")
    for edit in settings.edits:
        yield PlanLine("edit", edit, "on a copy, in memory")
    for line in settings.torch_settings:
        yield PlanLine("set", line, "a setting of torch can name programs that are run", warns=True)
    for id, choice in settings.overrides.items():
        yield PlanLine("override", f"{id} = {choice}")
    yield PlanLine("how", ", ".join(_how(settings)))


def _how(settings: Settings) -> Iterator[str]:
    yield f"engine {settings.engine}"
    yield f"mode {settings.mode}" if settings.mode else "default mode"
    yield settings.grad
    if settings.fullgraph:
        yield "fullgraph"
    if settings.dynamic is not None:
        yield "dynamic" if settings.dynamic else "not dynamic"
    for mark in settings.mark_dynamic:
        yield f"{mark} dynamic"
    for name in settings.as_tensors:
        yield f"{name} as a tensor"
    if settings.device == "cuda":
        yield f"code for {settings.arch or 'cuda'}"
    if settings.cached:
        yield "torch's own caches"
    if settings.until != "run":
        yield f"until {settings.until}"


def _arguments(text: str) -> Iterator[Argument]:
    call = parse_inputs(text)
    yield from call.positional
    yield from call.keyword.values()


def _bytes(argument: Argument) -> int:
    """Of the tensors in an argument."""
    if isinstance(argument, tuple | list):
        return sum(map(_bytes, argument))
    if not isinstance(argument, TensorSpecification):
        return 0
    bits = re.search(r"\d+", argument.dtype)
    count = int(bits[0]) // 8 if bits else 1
    for size in argument.shape:
        count *= size
    return count
