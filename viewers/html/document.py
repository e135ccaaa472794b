"""The file: one page with its style, its script and its data, which loads nothing.

The content security policy allows the one script and the one style sheet, by their hashes, and no
connection; there are no inline handlers. The data is JSON in which no character can end its
element.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from viewers.html.style import style_sheet
from viewers.html.tour import Place, Screen, Tour
from viewers.plain import plain

_ESCAPED = {one: f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


BEGIN = "<!doctype html><!-- tcw export -->"


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
<div id="bar"></div><div id="foot"></div><div id="printed"></div>
<script type="application/json" id="data">{_json(_data(tour))}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text.encode("utf-8", "replace").decode()


def _data(tour: Tour) -> dict[str, Any]:
    numbers = {key: number for number, key in enumerate(tour.screens)}
    said = ""
    if tour.left_out:
        said = f"{tour.left_out} more screens are in the trace: tcw open, or tcw export --most MB"
    return {
        "panels": [
            {
                "pane": one.pane,
                "name": plain(one.name),
                "subject": plain(one.subject),
                "right": one.right,
                "rows": one.rows,
                "refs": one.refs,
                "keyed": one.keyed,
                "left": one.left_out,
            }
            for one in tour.panels
        ],
        "rows": list(tour.pool.rows.values()),
        "screens": [_screen(one, numbers) for one in tour.screens.values()],
        "tabs": {name: numbers[key] for name, key in tour.tabs.items()},
        "lights": {ref: _signed(lit) for ref, lit in tour.lights().items()},
        "said": said,
    }


def _screen(screen: Screen, numbers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "a": screen.arrangement,
        "c": screen.compile_id,
        "h": screen.header,
        "b": screen.bar,
        "t": _place(screen.top, numbers) if screen.top is not None else None,
        "k": [
            (share, [(part, _place(place, numbers)) for part, place in slots])
            for share, slots in screen.columns
        ],
        "s": _place(screen.spine, numbers),
        "l": _signed(screen.lit),
        "f": screen.focus,
    }


def _place(place: Place, numbers: Mapping[str, int]) -> dict[str, Any]:
    moves, opens = (
        {row: numbers[key] for row, key in edges.items()} for edges in (place.moves, place.opens)
    )
    return {"p": place.panel, "c": place.start, "m": moves, "o": opens}


def _signed(lit: Mapping[int, bool]) -> list[int]:
    """Numbers of refs; negative where the link is inferred."""
    return [number if exact else -number for number, exact in lit.items()]
