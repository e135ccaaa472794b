"""Colours that everyone can read and tell apart."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from rich.color import Color

from tcw.viewers.kit.colours import DARK, FILLS, LIGHT
from tcw.viewers.kit.theme import LEAST, LEAST_OF_SHAPES, SHAPES, THEMES, Theme, ThemeName, contrast
from tests.conftest import Golden
from tests.no_torch.tui.cells import looks, roles

MEANINGS = ("accent", "good", "bad", "warn", "hot")
SIGHTS = {
    "full": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protan": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip
"""Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB."""
APART = 16.0
"""CIE76 distance that two meanings keep in each of these."""


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of a colour as it is seen."""
    parts = [part / 255 for part in Color.parse(colour).get_truecolor()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    red, green, blue = (
        min(1.0, max(0.0, sum(w * x for w, x in zip(row, linear, strict=True))))
        for row in SIGHTS[sight]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.fixture(params=["dark", "light"])
def theme(request: pytest.FixtureRequest) -> Theme:
    return THEMES[request.param]


def test_words_are_legible_on_every_ground(theme: Theme) -> None:
    for role, tint in theme._legible:
        style = theme.base(tint) + theme.style(role, tint)
        assert style.color is not None
        assert style.bgcolor is not None
        least = LEAST_OF_SHAPES if role in SHAPES else LEAST
        assert contrast(style.color, style.bgcolor) >= least, (role, tint)


def test_words_are_legible_in_a_drawing() -> None:
    for palette in (DARK, LIGHT):
        for fill in FILLS:
            ground = Color.parse(palette[fill])
            assert contrast(Color.parse(palette["text"]), ground) >= 7
            assert contrast(Color.parse(palette["dim-on-fill"]), ground) >= LEAST


@pytest.mark.parametrize("sight", SIGHTS)
def test_meanings_are_told_apart(theme: Theme, sight: str) -> None:
    for one, other in combinations(MEANINGS, 2):
        far = math.dist(lab(theme.colours[one], sight), lab(theme.colours[other], sight))
        assert far >= APART, (one, other)


def test_what_was_added_and_removed_is_told_apart(theme: Theme) -> None:
    """By its ground alone; the sign says it as well."""
    for sight in SIGHTS:
        added, removed = (lab(theme.colours[one], sight) for one in ("added", "removed"))
        assert math.dist(added, removed) >= 5, sight


@pytest.mark.parametrize("name", THEMES)
def test_looks(name: ThemeName, golden: Golden) -> None:
    """What the names of roles stand for in the texts of screens."""
    golden(f"tui/looks-{name}.txt", looks(THEMES[name]))


def test_a_role_has_one_look_on_a_ground() -> None:
    """So the text of a screen says what each cell looks like."""
    for name in THEMES:
        found = [(role, behind) for (_, behind, _), role in roles(name).items()]
        assert len(set(found)) == len(found)


def test_no_colour_has_none() -> None:
    mono = THEMES["mono"]
    styles = [*mono._legible, *((role, "") for role, _ in mono._legible)]
    for role, tint in styles:
        style = mono.base(tint) + mono.style(role, tint)
        assert style.color is None
        assert style.bgcolor is None
