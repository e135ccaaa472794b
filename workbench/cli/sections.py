"""`--show`: the sections of a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tcw.compiler.control.error_words import meant
from tcw.viewers.text.sections import DETAILS, SECTIONS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def show_option(help: str) -> Callable[[Decorated], Decorated]:
    """`help`: its help, with `{}` for the names."""
    return click.option(
        "--show",
        multiple=True,
        callback=_show,
        metavar="SECTION,…",
        help=help.format(", ".join(SECTIONS)),
    )


def _show(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    for wanted in names:
        name, equals, detail = wanted.partition("=")
        if name in SECTIONS and equals and detail not in DETAILS.get(name, ()):
            there = " or ".join(f"{name}={one}" for one in DETAILS.get(name, ()))
            raise click.BadParameter(f"{wanted}: use {there or name}")
        if name not in SECTIONS:
            hint = meant(name, SECTIONS, f"Sections: {', '.join(SECTIONS)}.")
            raise click.BadParameter(f"no section {name!r}. {hint}")
    detailed = {wanted.partition("=")[0]: wanted for wanted in sorted(names)}
    return tuple(detailed[name] for name in SECTIONS if name in detailed)
