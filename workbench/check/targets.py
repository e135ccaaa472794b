"""What a project checks: the targets of its `tcw.toml`, or of `[tool.tcw.check]`.

    [targets.block]
    file = "models/block.py"         # or "models/block.py::Block(64)"
    inputs = ["f32[8,64]"]           # any option of `tcw explain`, by its name
    train = true
    fused = ["softmax + add"]        # has to be one kernel

    [targets.block.tolerance]
    kernels = 1
    "memory peak" = "2%"

    [targets.train]
    recording = "out/train.tcw"      # a trace, or a log of TORCH_TRACE: it is read, nothing is run

A `[tolerance]` at the top holds for all targets. Checking runs the files that the project names, as
its tests would; they have to be in the project.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from tcw.compiler.protocol.error_words import meant
from tcw.compiler.trace.records import Settings
from tcw.viewers.summary.budget import LISTED, BadTolerance, Tolerance, read_tolerance
from tcw.viewers.summary.facts import NUMBERS
from tcw.workbench.request.config import (
    ConfigRefused,
    converted,
    nearest,
    no_option,
    options_of,
    trusted_text,
)
from tcw.workbench.request.folders import has_several, trace_in
from tcw.workbench.request.options import recording_options, settings_of

FILE = "tcw.toml"
OWN_KEYS = ("file", "recording", "fused", "tolerance")
_PARSER = click.command("check")(recording_options(lambda **_: None))
"""Of the options of `tcw explain` that say how a recording is made."""


class NoProject(Exception):
    """There is nothing to check; the message says what is missing."""


@dataclass(frozen=True)
class CheckTarget:
    """One thing to compile, or the recording of one."""

    name: str
    file: Path
    """The file to compile, or the recording."""
    settings: Settings | None
    """How to compile it; None for a recording."""
    fused: tuple[str, ...]
    tolerances: Mapping[str, Tolerance]


@dataclass(frozen=True)
class Project:
    """A project's configuration."""

    file: Path
    """The `tcw.toml` or `pyproject.toml`."""
    targets: tuple[CheckTarget, ...]

    @property
    def folder(self) -> Path:
        return self.file.parent


def find(folder: Path) -> Path:
    """The configuration of the project that `folder` is in. Raises `NoProject`."""
    folder = folder.resolve()
    try:
        for name in (FILE, "pyproject.toml"):
            file = nearest(folder, name)
            if file is not None and (name == FILE or "tcw" in trusted_text(file)):
                return file
    except ConfigRefused as refused:
        raise NoProject(str(refused)) from refused
    raise NoProject(
        f"no {FILE} and no [tool.tcw.check] in {folder} or above it: "
        f"write {FILE} with a [targets.NAME] and its `file`"
    )


def read(file: Path, names: tuple[str, ...] = ()) -> Project:
    """The project, or those targets alone. Raises `click.UsageError` for what it does not allow,
    and `NoProject` for a file that cannot be trusted or has no targets."""
    try:
        text = trusted_text(file)
        table = tomllib.loads(text)
    except ConfigRefused as refused:
        raise NoProject(str(refused)) from refused
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    if file.name != FILE:
        table = _table(file, _table(file, _table(file, table, "tool"), "tcw"), "check")
    unknown = sorted(set(table) - {"targets", "tolerance"})
    if unknown:
        raise click.UsageError(f"{file}: unknown key {unknown[0]!r}: expected targets or tolerance")
    shared = _tolerances(file, "tolerance", table.get("tolerance", {}))
    tables = _table(file, table, "targets")
    if not tables:
        raise NoProject(f"{file} has no [targets.NAME]")
    for name in names:
        if name not in tables:
            hint = meant(name, tables, f"Targets: {', '.join(tables)}.")
            raise click.UsageError(f"{file}: no target {name!r}. {hint}")
    wanted = names or tuple(tables)
    return Project(file, tuple(_target(file, name, tables[name], shared) for name in wanted))


def _target(file: Path, name: str, table: Any, shared: Mapping[str, Tolerance]) -> CheckTarget:
    where = f"{file}: target {name}"
    table = table if isinstance(table, dict) else {}
    named = [key for key in ("file", "recording") if isinstance(table.get(key), str)]
    if len(named) != 1:
        raise click.UsageError(f"{where} has no `file`, or `recording` instead")
    path, _, model = table[named[0]].partition("::")
    source = (file.parent / path).resolve()
    if not source.is_relative_to(file.parent.resolve()):
        raise click.UsageError(f"{where}: {path} is outside the project")
    recorded = named == ["recording"]
    if recorded:
        source = _recording(where, source, path)
    elif not source.is_file():
        raise click.UsageError(f"{where}: there is no file {path}")
    fused = table.get("fused", [])
    if not isinstance(fused, list) or not all(isinstance(one, str) for one in fused):
        raise click.UsageError(f'{where}: fused must be a list of texts such as "softmax + add"')
    given = {key: value for key, value in table.items() if key not in OWN_KEYS}
    if model:
        given["model"] = model
    if recorded and given:
        raise click.UsageError(
            f"{where}: {next(iter(given))} says how to record, and it is recorded"
        )
    tolerances = {**shared, **_tolerances(file, name, table.get("tolerance", {}))}
    settings = None if recorded else _settings(where, source, given)
    return CheckTarget(name, source, settings, tuple(fused), tolerances)


def _recording(where: str, source: Path, path: str) -> Path:
    """The file of a recording; of a folder the only one."""
    if not source.exists():
        raise click.UsageError(f"{where}: there is no recording {path}: make it before the check")
    if has_several(source):
        raise click.UsageError(f"{where}: {path} has several recordings, or none: name one of them")
    return trace_in(source)


def _settings(where: str, file: Path, given: Mapping[str, Any]) -> Settings:
    """The settings of `tcw explain` with these options."""
    options = options_of(_PARSER)
    ctx = _PARSER.make_context("check", [])
    for key, value in given.items():
        option = options.get(key.replace("_", "-"))
        if option is None or option.name is None:
            raise click.UsageError(f"{where}: {no_option(key, [*options, *OWN_KEYS])}")
        ctx.params[option.name] = converted(ctx, option, value, f"{where}: {key}")
    if ctx.params["engine"] == "both":
        raise click.UsageError(f"{where}: give one engine; make two targets to check both")
    return msgspec.structs.replace(settings_of(ctx, file), defaults_from="")


def _tolerances(file: Path, name: str, table: Any) -> dict[str, Tolerance]:
    if not isinstance(table, dict):
        raise click.UsageError(f"{file}: the tolerance of {name} must be a table")
    found = {}
    for key, value in table.items():
        if _spaced(key) not in NUMBERS and key not in LISTED:
            known = [one.replace(" ", "-") for one in (*NUMBERS, *LISTED)]
            hint = meant(key.replace(" ", "-"), known, "docs/check.md lists the facts")
            raise click.UsageError(f"{file}: the tolerance of {name}: no fact {key!r}. {hint}")
        try:
            found[_spaced(key)] = read_tolerance(value)
        except BadTolerance as error:
            raise click.UsageError(f"{file}: {key}: {error}") from error
    return found


def _spaced(key: str) -> str:
    return key.replace("-", " ")


def _table(file: Path, table: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise click.UsageError(f"{file}: {name} must be a table")
    return found
