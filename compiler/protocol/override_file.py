"""The file of overrides: a choice for each decision, by its id."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tcw.compiler.protocol.decision import APART, ENGINES, engine_of


class OverrideError(Exception):
    """The override file cannot be used; the message says why and where."""


def read_overrides(file: Path) -> dict[str, str]:
    """The overrides of a TOML file, id -> choice. Raises `OverrideError`, which says what to do."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OverrideError(f"{file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise OverrideError(
            f'{file}: {error}; a line is "decision id" = "choice", both in quotes'
        ) from error
    for id, choice in table.items():
        if not isinstance(choice, str):
            raise OverrideError(
                f'{file}: {id}: the value must be a choice in quotes, such as "{APART}"'
            )
        if engine_of(id) not in ENGINES:
            begin = " or ".join(f"{engine}/" for engine in ENGINES)
            raise OverrideError(f"{file}: {id}: ids of decisions begin with {begin}")
    return dict(table)
