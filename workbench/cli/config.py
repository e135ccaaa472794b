"""Defaults from `[tool.tcw]` in the pyproject.toml of the user's project.

    [tool.tcw]
    train = true                # for every verb that has the option
    [tool.tcw.explain]
    show = ["breaks", "guards"]

The project is that of the file that is explained: the nearest pyproject.toml at or above it.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource


def apply_defaults(ctx: click.Context, folder: Path) -> None:
    """Set each parameter that the command line left alone to what the project says.

    Raises `click.UsageError` for an unknown key or a value that does not fit its option.
    """
    file = nearest(folder)
    if file is None:
        return
    assert ctx.command.name is not None
    options = {one.name: one for one in ctx.command.params if isinstance(one, click.Option)}
    shared, own = read(file, ctx.command.name)
    for key in own:
        if key.replace("-", "_") not in options:
            raise click.UsageError(f"{file}: {_unknown(key, options)}", ctx)
    for key, value in {**shared, **own}.items():
        option = options.get(key.replace("-", "_"))
        if option is None or option.name is None:
            continue
        if ctx.get_parameter_source(option.name) not in (None, ParameterSource.DEFAULT):
            continue
        ctx.params[option.name] = _converted(ctx, option, value, f"{file}: {key}")


def nearest(folder: Path) -> Path | None:
    """The pyproject.toml of `folder` or of the nearest folder above it."""
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            return file
    return None


def read(file: Path, verb: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """`[tool.tcw]` and `[tool.tcw.VERB]`; a file that is no TOML is a `click.UsageError`."""
    try:
        text = file.read_text(encoding="utf-8")
        if "tcw" not in text:
            return {}, {}
        table = tomllib.loads(text).get("tool", {}).get("tcw", {})
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    own = table.get(verb, {}) if isinstance(table, dict) else None
    if not isinstance(own, dict):
        raise click.UsageError(f"{file}: [tool.tcw] and [tool.tcw.{verb}] have to be tables")
    return {key: one for key, one in table.items() if not isinstance(one, dict)}, own


def _converted(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
    if option.multiple and isinstance(value, str):
        value = [value]
    try:
        return option.process_value(ctx, value)
    except click.BadParameter as error:
        raise click.UsageError(f"{where}: {error.message}", ctx) from error
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"{where}: {value!r} does not fit", ctx) from error


def _unknown(key: str, options: dict[str, click.Option]) -> str:
    names = [name.replace("_", "-") for name in options]
    close = get_close_matches(key, names, n=1)
    return f"no option {key!r}." + (f" Did you mean {close[0]!r}?" if close else "")
