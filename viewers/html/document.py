"""The file: one page with its style, its script and its data, which loads nothing.

The content security policy allows the one script and the one style sheet, by their hashes, and no
connection; there are no inline handlers. The data is JSON in which no character can end its
element.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tcw.viewers.html import BEGIN
from tcw.viewers.html.drawn import Panel, PanelPlace, Screen
from tcw.viewers.html.pool import ROLES, Distinct, Spans, encoded
from tcw.viewers.html.tour import Tour
from tcw.viewers.kit.theme import THEMES, Theme, Tint
from tcw.viewers.panes.arrangement import ARRANGEMENTS
from tcw.viewers.plain import plain

_ESCAPED = {one: f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}
_TINTS: tuple[Tint, ...] = ("", "selected", "exact", "inferred", "title", "added", "removed")


def document(tour: Tour, title: str, report: str) -> str:
    """The page of a tour. `report`: plain text, for a browser that runs no script."""
    script = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    style = style_sheet()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""\
{BEGIN}
<html lang="en" data-theme="dark">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<meta name="generator" content="tcw">
<title>{html.escape(plain(title))}</title>
<style>{style}</style>
</head>
<body>
<noscript><pre>{html.escape(report)}</pre></noscript>
<div id="header"></div><nav id="tabs"></nav><main id="middle"></main>
<div id="bar"></div><div id="replay"></div><div id="foot"></div><div id="printed"></div>
<template id="lines">\
<svg preserveAspectRatio="none"><path></path><path class="way"></path></svg></template>
<script type="application/json" id="data">{_json(_data(tour))}</script>
<script>{script}</script>
</body>
</html>
"""


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


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: Any) -> str:
    text = encoded(data)
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text.encode("utf-8", "replace").decode()


def _data(tour: Tour) -> dict[str, Any]:
    tables = _Tables({key: number for number, key in enumerate(tour.screens)})
    screens = [tables.screen(screen) for screen in tour.screens.values()]
    said = ""
    if tour.left_out:
        said = (
            f"{tour.left_out} more screens are in the trace: tcw open shows them all, "
            "--most MB includes more"
        )
    return {
        "panels": [_panel(panel, tables.zooms(tour, at)) for at, panel in enumerate(tour.panels)],
        "rows": list(tour.pool.rows.values()),
        "conditions": list(tour.conditions.numbers.values()),
        "arrangements": [_arrangement(arrangement) for arrangement in tables.arrangements.values()],
        "headers": list(tables.headers.values()),
        "lit": list(tables.lit.values()),
        "edges": [dict(edge) for edge in tables.edges.values()],
        "places": list(tables.places.values()),
        "screens": screens,
        "stops": [(label, tables.numbers[key]) for label, key in tour.stops],
        "puzzles": [
            (choice, {name: tables.numbers[key] for name, key in keys.items()})
            for choice, keys in tour.puzzles
        ],
        "tabs": {name: tables.numbers[key] for name, key in tour.tabs.items()},
        "lights": {ref: _signed(lit) for ref, lit in tour.lights().items()},
        "said": said,
        "button": ROLES.index("button"),
    }


def _panel(panel: Panel, zooms: list[int]) -> dict[str, Any]:
    """The parts of the panel that are not the page's defaults."""
    found = {
        "pane": panel.pane,
        "name": "" if panel.name == panel.pane else plain(panel.name),
        "subject": plain(panel.subject),
        "right": panel.right,
        "rows": panel.rows,
        "refs": panel.refs if any(panel.refs) else (),
        "keyed": panel.keyed,
        "still": int(panel.still),
        "left": panel.left_out,
        "when": panel.when,
        "folds": panel.folds,
        "picture": panel.picture,
        "zooms": zooms,
    }
    return {key: value for key, value in found.items() if value}


def _arrangement(name: str) -> dict[str, Any]:
    """The panel's shares of the page."""
    arrangement = ARRANGEMENTS[name]
    return {
        "name": name,
        "top": arrangement.top is not None,
        "columns": [
            (column.share, [slot.share for slot in column.slots]) for column in arrangement.columns
        ],
        "focus": arrangement.focus,
    }


class _Tables:
    """Parts that many screens share, stored once; a screen has their numbers."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.numbers = numbers
        """Key of a screen -> its number."""
        self.arrangements: Distinct[str] = Distinct()
        self.headers: Distinct[Spans] = Distinct()
        self.lit: Distinct[tuple[int, ...]] = Distinct()
        self.edges: Distinct[tuple[tuple[int, int], ...]] = Distinct()
        """(row, screen) of all rows of a place that lead to a screen."""
        self.places: Distinct[tuple[int, int, int, int]] = Distinct()
        """(panel, row of the cursor, edges of moving, edges of opening)."""

    def screen(self, screen: Screen) -> tuple[Any, ...]:
        """Arrangement, compile, header, rows of the bar, what is lit, places."""
        return (
            self.arrangements.number(screen.arrangement),
            screen.compile_id,
            self.headers.number(screen.header),
            screen.bar,
            self.lit.number(_signed(screen.lit)),
            [self._place(place) for place in screen.places],
        )

    def zooms(self, tour: Tour, panel: int) -> list[int]:
        """The screens at each scale of a picture; empty unless all are in the document."""
        keys = tour.zooms.get(panel, ())
        found = [self.numbers[key] for key in keys if key in self.numbers]
        return found if len(found) == len(keys) else []

    def _place(self, place: PanelPlace) -> int:
        moves, opens = (
            self.edges.number(tuple((row, self.numbers[key]) for row, key in found.items()))
            for found in (place.moves, place.opens)
        )
        return self.places.number((place.panel, place.start, moves, opens))


def _signed(lit: Mapping[int, bool]) -> tuple[int, ...]:
    """Numbers of refs; negative if the link is inferred."""
    return tuple(number if exact else -number for number, exact in lit.items())
