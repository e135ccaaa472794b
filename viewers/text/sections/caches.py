"""`--show caches`: hits and misses of each compile cache."""

from __future__ import annotations

from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.table import heading, table
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import plural, seconds_text

REASONS = 5
"""Distinct reasons shown per cache."""


def section(view: SectionView) -> list[TextLine]:
    caches = view.summary.caches
    if not caches:
        return [heading("caches", "no cache was queried")]
    lines = [heading("caches", plural(len(caches), "cache"))]
    for cache in caches:
        counts = f"{plural(cache.hits, 'hit')}, {plural(cache.misses, 'miss')}"
        if cache.bypasses:
            counts += f", {plural(cache.bypasses, 'bypass')}"
        if cache.saved_seconds:
            counts += f", {seconds_text(cache.saved_seconds)} saved"
        lines += table([[cache.cache, counts]], "ll", view.width, 2)
        lines += [line("      ", reason, fixed=True) for reason in cache.missed[:REASONS]]
        if len(cache.missed) > REASONS:
            lines.append(line((f"      … {len(cache.missed) - REASONS} more reasons", "dim")))
    return lines
