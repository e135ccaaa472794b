"""A screen as an SVG that stands alone: it loads nothing, and is the same for the same screen."""

from __future__ import annotations

import re

from textual.app import App

_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ID = re.compile(r"terminal-\d+")


def picture(app: App[None], title: str = "tcw") -> str:
    """What `app` shows, without Rich's links to fonts and with ids that do not change."""
    svg = app.export_screenshot(title=title, simplify=True)
    for pattern, replacement in ((_FONT_FACE, ""), (_COMMENT, ""), (_ID, "terminal")):
        svg = pattern.sub(replacement, svg)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"
