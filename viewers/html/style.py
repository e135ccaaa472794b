"""The style sheet: the themes of the workbench as CSS, and the layout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from viewers.html.pool import ROLES
from viewers.kit.theme import THEMES, Theme, Tint

_TINTS: tuple[Tint, ...] = ("", "selected", "exact", "inferred", "title", "added", "removed")


def style_sheet() -> str:
    """The whole style sheet."""
    layout = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    colours = (rule for name in ("dark", "light") for rule in _rules(THEMES[name]))
    return "\n".join([*colours, layout])


def _rules(theme: Theme) -> Iterator[str]:
    at = f'[data-theme="{theme.name}"]'
    named = (
        "background",
        "raised",
        "rule",
        "text",
        "dim",
        "accent",
        "selected",
        "faint",
        "dim-on-fill",
    )
    variables = "".join(f"--{name}:{theme.colours[name]};" for name in named)
    yield f"{at}{{color-scheme:{theme.name};{variables}}}"
    for tint in _TINTS:
        inside = f" .t-{tint}" if tint else ""
        if tint:
            ground = theme.base(tint).bgcolor
            yield f"{at}{inside}{{background:{ground.name if ground else 'none'}}}"
        for number, role in enumerate(ROLES):
            style = theme.style(role, tint)
            rules = []
            if style.color is not None:
                rules.append(f"color:{style.color.get_truecolor().hex}")
            if not tint and style.bgcolor is not None:
                rules.append(f"background:{style.bgcolor.get_truecolor().hex}")
            if not tint and style.bold:
                rules.append("font-weight:bold")
            plain = theme.style(role)
            if tint and style.color == plain.color:
                continue
            if rules:
                yield f"{at}{inside} .r{number}{{{';'.join(rules)}}}"
