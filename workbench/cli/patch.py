"""Writes the source edits that were kept as a patch, after applying it to a copy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from tcw.compiler.edits import EditError, applied, diff
from tcw.compiler.trace.records import Settings, Trial
from tcw.viewers.summary.profile.causes.cause import chosen
from tcw.workbench.cli.edits import base_of, names_of, source_diff, texts_of
from tcw.workbench.cli.output import say
from tcw.workbench.cli.outputs import Outputs
from tcw.workbench.cli.trials import changed_by


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
        patch = _checked(texts)
    except (EditError, OSError, UnicodeDecodeError) as error:
        outputs.fail(f"--patch {path} was not written: {error}")
        return
    if outputs.write("--patch", path, patch):
        base = base_of(texts)
        where = "" if base == os.getcwd() else f" -d {base}"
        say(f"wrote {path}; apply it with: patch -p1{where} < {shlex.quote(str(path))}")


def _checked(texts: dict[str, tuple[str, str]]) -> str:
    """A patch from each first text to the second. Raises `EditError` if it does anything else."""
    names = names_of(texts)
    patch = "".join(diff(names[file], *pair) for file, pair in texts.items())
    made = applied(patch, {names[file]: before for file, (before, _) in texts.items()})
    for file, (before, after) in texts.items():
        if made.get(names[file], before) != after:
            raise EditError(f"it would not reproduce the edits of {file}")
    return patch
