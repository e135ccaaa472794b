"""Styles: what a role looks like in the dark, the light and the colourless theme."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rich.color import Color, blend_rgb
from rich.style import Style

from tcw.viewers.kit.colours import BOLD, DARK, FILLS, FOREGROUND, LIGHT
from tcw.viewers.kit.spans import Role

Tint = Literal["", "selected", "exact", "inferred", "cursor", "title", "added", "removed"]
ThemeName = Literal["dark", "light", "mono"]

SHAPES: frozenset[Role] = frozenset({"bar-good", "bar-bad"})
"""Roles of bars, which contain no text."""
_QUIET: frozenset[Role] = frozenset({"dim", "faint", "comment"})
_PLAIN: dict[Role, Style] = {
    "bad-range": Style(underline=True),
    "here": Style(reverse=True),
    "hit": Style(reverse=True),
    "turn": Style(reverse=True, bold=True),
    "button": Style(underline=True, bold=True),
    "off": Style(dim=True),
    "bad": Style(bold=True),
    "warn": Style(bold=True),
    "comment": Style(dim=True),
    "faint": Style(dim=True),
}
_PLAIN_TINTS: dict[Tint, Style] = {
    "selected": Style(reverse=True),
    "exact": Style(bold=True, underline=True),
    "inferred": Style(underline=True),
    "cursor": Style(reverse=True, dim=True),
    "added": Style(),
    "removed": Style(dim=True),
}


LEAST = 4.5
"""Minimum contrast of text with its background."""
LEAST_OF_SHAPES = 3.0
"""The same for bars: WCAG 2's minimum for graphics."""


def contrast(one: Color, other: Color) -> float:
    """WCAG 2's ratio of two colours, from 1 to 21."""
    first, second = sorted((_luminance(one), _luminance(other)))
    return (second + 0.05) / (first + 0.05)


def _luminance(colour: Color) -> float:
    """WCAG 2's relative luminance, of sRGB."""
    parts = [part / 255 for part in colour.get_truecolor()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _legible(colour: Color, ground: Color, text: str, least: float) -> Color:
    """The colour, mixed with as much of the text's colour as makes it legible on `ground`."""
    far = Color.parse(text).get_truecolor()
    near = colour.get_truecolor()
    for step in range(17):
        mixed = Color.from_triplet(blend_rgb(near, far, step / 16))
        if contrast(mixed, ground) >= least:
            return mixed
    return colour


@dataclass(frozen=True)
class Theme:
    """Styles by role and tint."""

    name: ThemeName
    spells_keys: bool = False
    """The key `⏎` is written as a word, for terminals without the glyph."""

    @cached_property
    def colours(self) -> dict[str, str]:
        return {"dark": DARK, "light": LIGHT, "mono": {}}[self.name]

    @cached_property
    def background(self) -> str:
        """Textual colour of the screen."""
        return self.colours.get("background", "ansi_default")

    @cached_property
    def quiet_on_fill(self) -> Style:
        """The words of a block that matter less."""
        colour = self.colours.get("dim-on-fill")
        return Style(color=colour) if colour else self._roles["dim"]

    @cached_property
    def rule(self) -> Style:
        return self.base("") + Style(color=self.colours.get("rule"))

    @cached_property
    def _roles(self) -> dict[Role, Style]:
        if self.name == "mono":
            return {role: _PLAIN.get(role, Style(bold=role in BOLD)) for role in FOREGROUND}
        styles = {
            role: Style(color=self.colours[colour], bold=role in BOLD or None)
            for role, colour in FOREGROUND.items()
        }
        styles["bad-range"] += Style(bgcolor=self.colours["bad-range"])
        styles["here"] += Style(bgcolor=self.colours["selected"])
        styles["hit"] += Style(bgcolor=self.colours["warn"])
        styles["turn"] += Style(bgcolor=self.colours["accent"])
        styles["button"] += Style(bgcolor=self.colours["rule"])
        styles["off"] += Style(bgcolor=self.colours["raised"])
        for role in FILLS:
            styles[role] += Style(bgcolor=self.colours[role])
        return styles

    @cached_property
    def _promoted(self) -> dict[Role, Style]:
        """Dim text would fall below 4.5:1 on the selection, so there it takes the text's colour."""
        if self.name == "mono":
            return self._roles
        text = Style(color=self.colours["text"])
        return {role: text if role in _QUIET else style for role, style in self._roles.items()}

    def style(self, role: Role, tint: Tint = "") -> Style:
        """The style of a span, without its row's background; legible on it."""
        return self._legible[role, tint]

    @cached_property
    def _legible(self) -> dict[tuple[Role, Tint], Style]:
        found: dict[tuple[Role, Tint], Style] = {}
        for tint, base in self._bases.items():
            for role, style in (self._promoted if tint == "selected" else self._roles).items():
                ground = style.bgcolor or base.bgcolor
                if style.color is not None and ground is not None and role != "turn":
                    least = LEAST_OF_SHAPES if role in SHAPES else LEAST
                    colour = _legible(style.color, ground, self.colours["text"], least)
                    style += Style(color=colour)
                found[role, tint] = style
        return found

    @cached_property
    def _bases(self) -> dict[Tint, Style]:
        if self.name == "mono":
            return {"": Style(), "title": Style(bold=True), **_PLAIN_TINTS}
        colours = self.colours
        backgrounds: dict[Tint, str] = {
            "": "background", "selected": "selected", "exact": "exact",
            "inferred": "inferred", "cursor": "raised", "title": "raised",
            "added": "added", "removed": "removed",
        }  # fmt: skip
        return {
            tint: Style(color=colours["text"], bgcolor=colours[colour])
            for tint, colour in backgrounds.items()
        }

    def base(self, tint: Tint, blank: bool = False) -> Style:
        """The row's own style, below all spans; `blank`: without what would underline blanks."""
        if blank and self.name == "mono" and tint in ("exact", "inferred"):
            return self._bases[""]
        return self._bases[tint]


THEMES: dict[ThemeName, Theme] = {name: Theme(name) for name in ("dark", "light", "mono")}
