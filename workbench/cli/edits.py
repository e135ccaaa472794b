"""The user's edits, and fixes that help, as a patch of the source files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from tcw.compiler.protocol.edits import EditError, by_file, diff, edited
from tcw.compiler.protocol.edits import applied as applied_patch
from tcw.compiler.trace.records import Settings, Trial
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.profile.causes.cause import chosen
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.fixes.candidates import NotTriable, applied, pasted, pasting
from tcw.workbench.request.messages import say
from tcw.workbench.request.options import changed_by


@dataclass(frozen=True)
class SourceDiff:
    """How the source of one run differs from that of another."""

    text: str
    """A unified diff. Paths are relative to the current folder; if a file is outside it, to the
    root folder."""
    reason: str = ""
    """Why the edits cannot be applied."""


def source_diff(before: Settings, after: Settings) -> SourceDiff:
    """The diff between the edits of two settings for one file."""
    if before.edits == after.edits:
        return SourceDiff("")
    try:
        texts = texts_of(before, after)
        names = names_of(texts)
        return SourceDiff("".join(diff(names[file], *pair) for file, pair in texts.items()))
    except EditError as error:
        return SourceDiff("", str(error))
    except (OSError, UnicodeDecodeError) as error:
        return SourceDiff("", f"the source cannot be read: {error}")


def texts_of(before: Settings, after: Settings) -> dict[str, tuple[str, str]]:
    """Path of each file that either edits -> its text with each side's edits.

    Raises `EditError`, OSError and UnicodeDecodeError.
    """
    found = {}
    old, new = (by_file(settings.edits, settings.file) for settings in (before, after))
    for file in {**old, **new}:
        with Path(file).open(encoding="utf-8", newline="") as stream:
            text = stream.read()
        found[file] = edited(text, old.get(file, ())), edited(text, new.get(file, ()))
    return found


def base_of(files: Iterable[str]) -> str:
    """The folder in which to apply a patch of these files: the current one, or the root folder."""
    here = os.getcwd()
    return here if all(os.path.commonpath((here, file)) == here for file in files) else os.sep


def names_of(files: Collection[str]) -> dict[str, str]:
    """The name of each file in a patch."""
    base = base_of(files)
    return {file: os.path.relpath(file, base).replace(os.sep, "/") for file in files}


def write_patch(outputs: Outputs, path: Path, settings: Settings, trials: Sequence[Trial]) -> None:
    """Write the kept source edits, with those that `settings` asked for, as a patch of the current
    files; report the result on stderr."""
    kept = chosen(trials)
    if kept is None or not kept.diff:
        what = "nothing was kept" if kept is None else "nothing that was kept changes the source"
        say(f"{path} was not written: {what}")
        return
    best = changed_by(settings, kept.options).settings
    try:
        if source_diff(settings, best).text != kept.diff:
            raise EditError("the source has changed since the edits were tried")
        texts = texts_of(structs.replace(settings, edits=()), best)
        patch = patch_of(texts)
    except (EditError, OSError, UnicodeDecodeError) as error:
        outputs.fail(f"--patch {path} was not written: {error}")
        return
    _write(outputs, path, patch, texts)


def write_fixes(outputs: Outputs, path: Path, settings: Settings, recording: Recording) -> None:
    """Write the chosen fixes, and report on stderr what the patch does not have."""
    with_fixes, left_out = settings, list[str]()
    recording = next(iter(recording.engines.values()), recording)
    for finding in summarise(recording).findings:
        fix = finding.fix
        if fix is None:
            continue
        try:
            with_fixes = applied(fix.advice, finding, recording, with_fixes)
        except NotTriable as error:
            left_out.append(f"not in the patch, {error}: {fix.advice.code or fix.advice.text}")
    lines = pasting(settings, with_fixes)["before_calls"]
    left_out += [f"not in the patch, but to run before each call: {line}" for line in lines]
    try:
        texts = pasted(with_fixes, settings)
        patch = patch_of(texts)
    except (EditError, OSError, UnicodeDecodeError) as error:
        outputs.fail(f"--patch {path} was not written: {error}")
        return
    for words in left_out:
        say(words)
    if not patch:
        say(f"{path} was not written: no fix changes the source")
    else:
        _write(outputs, path, patch, texts)


def _write(outputs: Outputs, path: Path, patch: str, files: Iterable[str]) -> None:
    """Write a patch of these files, and say how to apply it."""
    if outputs.write("--patch", path, patch):
        base = base_of(files)
        where = "" if base == os.getcwd() else f" -d {base}"
        say(f"wrote {path}; apply it with: patch -p1{where} < {shlex.quote(str(path))}")


def patch_of(texts: dict[str, tuple[str, str]]) -> str:
    """A patch from each first text to the second. Raises `EditError` if it does anything else."""
    names = names_of(texts)
    patch = "".join(diff(names[file], *pair) for file, pair in texts.items())
    made = applied_patch(patch, {names[file]: before for file, (before, _) in texts.items()})
    for file, (before, after) in texts.items():
        if made.get(names[file], before) != after:
            raise EditError(f"it would not reproduce the edits of {file}")
    return patch
