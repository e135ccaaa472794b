"""Defaults from `[tool.tcw]` in the pyproject.toml of the user's project.

    [tool.tcw]
    train = true                # for every verb that has the option
    [tool.tcw.explain]
    show = ["breaks", "guards"]

The project is that of the FILE argument. Its root is the nearest folder, starting from the file's
own, that has a pyproject.toml, a .git or a .hg. The search stops at a folder owned by another user,
at another file system and at the user's home folder. Only a pyproject.toml that no other user can
write to is read: a folder further up may belong to anyone (/tmp, for one).

Options that run code or name files are read from the command line only: the project may be a
stranger's repository, just cloned.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tcw.compiler.protocol.error_words import meant
from tcw.compiler.trace.plain_file import NotPlain, TooLarge, plain_file, read_at_most
from tcw.viewers.plain import plain

_CODE = ("model", "edit", "edits", "set", "torch-settings")
_FILES = ("override", "trace", "chrome", "patch", "output", "o")
COMMAND_LINE_ONLY = frozenset((*_CODE, *_FILES))
"""Keys that a project cannot set: they run code or name files."""
MOST_BYTES = 1 << 20
"""A larger pyproject.toml is not read."""


class ConfigRefused(Exception):
    """A pyproject.toml that is ignored; the message says why."""


def apply_defaults(ctx: click.Context, folder: Path) -> None:
    """Set each parameter that the command line does not give to the project's value,
    and note in the settings which pyproject.toml set any.

    A file that cannot be trusted is reported on stderr with the reason and ignored. Raises
    `click.UsageError` for an unknown key, a value that does not fit its option, and a key that can
    only be given on the command line.
    """
    try:
        file = nearest(folder)
        text = trusted_text(file) if file is not None else ""
    except ConfigRefused as refused:
        click.echo(f"tcw: {plain(str(refused))}; its [tool.tcw] is ignored", err=True)
        return
    if file is None or "tcw" not in text:
        return
    assert ctx.command.name is not None
    options = options_of(ctx.command)
    shared, own = tables(file, text, ctx.command.name)
    for key in (*shared, *own):
        if _dashed(key) in COMMAND_LINE_ONLY:
            raise click.UsageError(f"{file}: {key} can only be given on the command line")
    for key in own:
        if _dashed(key) not in options:
            raise click.UsageError(f"{file}: {no_option(key, options)}")
    for key, value in {**shared, **own}.items():
        option = options.get(_dashed(key))
        if option is None or option.name is None:
            continue
        if ctx.get_parameter_source(option.name) not in (None, ParameterSource.DEFAULT):
            continue
        ctx.params[option.name] = converted(ctx, option, value, f"{file}: {key}")
        ctx.meta["tcw.defaults_from"] = str(file)


def nearest(folder: Path, name: str = "pyproject.toml") -> Path | None:
    """The project's file of that name, the nearest to `folder` from the project's root on; None if
    there is none. `folder` has no symbolic links.

    Raises `ConfigRefused` if the file is in a folder owned by another user."""
    home, device = os.path.realpath(os.path.expanduser("~")), None
    for place in (folder, *folder.parents):
        file = place / name
        try:
            found = os.lstat(place)
        except OSError:
            return None
        if device not in (None, found.st_dev):
            return None
        device = found.st_dev
        there = os.path.lexists(file)
        if found.st_uid != os.geteuid():
            if there:
                raise ConfigRefused(f"{file} is in a folder owned by user {found.st_uid}")
            return None
        if there:
            return file
        if str(place) == home or any(os.path.lexists(place / name) for name in (".git", ".hg")):
            return None
    return None


def trusted_text(file: Path) -> str:
    """Raises `ConfigRefused` if the file belongs to another user, is writable by others, is not a
    regular file, or is too large."""
    try:
        with plain_file(file, links=False) as (stream, found):
            if found.st_uid != os.geteuid():
                raise ConfigRefused(f"{file} belongs to user {found.st_uid}")
            if found.st_mode & 0o002 or (found.st_mode & 0o020 and not _private(found.st_gid)):
                raise ConfigRefused(f"{file} is writable by others (chmod go-w)")
            data = read_at_most(stream, file, MOST_BYTES)
    except (NotPlain, TooLarge) as error:
        raise ConfigRefused(str(error)) from error
    except OSError as error:
        why = "is a link" if file.is_symlink() else f"cannot be read ({error.strerror})"
        raise ConfigRefused(f"{file} {why}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file}: {error}") from error


def _private(group: int) -> bool:
    """Whether this is a user's private group, named after the user: many systems create one per
    user and make files group-writable."""
    import grp
    import pwd

    try:
        found, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    alone = set(found.gr_mem) <= {user.pw_name}
    return found.gr_name == user.pw_name and group == user.pw_gid and alone


def tables(file: Path, text: str, verb: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """`[tool.tcw]` and `[tool.tcw.VERB]`; raises `click.UsageError` for invalid TOML."""
    try:
        table = tomllib.loads(text).get("tool", {}).get("tcw", {})
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    own = table.get(verb, {}) if isinstance(table, dict) else None
    if not isinstance(own, dict):
        raise click.UsageError(f"{file}: [tool.tcw] and [tool.tcw.{verb}] must be tables")
    return {key: one for key, one in table.items() if not isinstance(one, dict)}, own


def converted(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
    if option.multiple and isinstance(value, str):
        value = [value]
    try:
        return option.process_value(ctx, value)
    except click.BadParameter as error:
        raise click.UsageError(f"{where}: {error.message}") from error
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"{where}: {value!r} is not a valid value") from error


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Each option by its command-line names, without the dashes."""
    params = [param for param in command.params if isinstance(param, click.Option)]
    return {
        _dashed(name): option
        for option in params
        for name in (option.name or "", *(given.lstrip("-") for given in option.opts))
    }


def _dashed(key: str) -> str:
    return key.replace("_", "-")


def no_option(key: str, options: Iterable[str]) -> str:
    return f"no option {key!r}. {meant(key, options)}".rstrip()
