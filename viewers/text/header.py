"""The first lines of `tcw explain`: what was recorded, the verdict, the counts."""

from __future__ import annotations

import os

from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.labels import calls_text
from tcw.viewers.summary import Summary
from tcw.viewers.summary.numerics import numerics_words
from tcw.viewers.words import NOT_MEASURED, number, plural, seconds_text

_GRAD = {"grad": "grad", "no-grad": "no-grad", "inference": "inference mode", "train": "train"}


def header(summary: Summary) -> list[TextLine]:
    """Title, verdict, counts."""
    tone = TONES[summary.verdict.tone]
    verdict = summary.verdict
    numbers = verdict.detail.text
    detail = f": {numbers}" if numbers else ""
    return [title(summary), line((verdict.headline, tone), detail, hang=2), counts(summary)]


def file_name(summary: Summary) -> str:
    """`block.py`."""
    return os.path.basename(summary.settings.file) if summary.settings else "recording"


def title(summary: Summary, engine: str = "") -> TextLine:
    """`block.py  train · inductor · torch 2.13.0 · cpu, 2 threads · 4 calls`."""
    words = " · ".join(settings_words(summary, engine))
    return line((file_name(summary), "strong"), (f"  {words}", "dim"), hang=2)


def settings_words(summary: Summary, engine: str = "") -> list[str]:
    """What was recorded and how, one phrase each; `engine` if there was more than one."""
    settings, machine = summary.settings, summary.environment
    words = []
    if summary.not_in_log:
        words.append("a log of torch's")
    elif settings and settings.program:
        words.append("recorded in its own process")
    elif summary.script:
        words.append("script")
    elif settings:
        words += [_GRAD[settings.grad], engine or settings.engine]
        words += [settings.mode] if settings.mode else []
        words += ["torch's caches"] if settings.cached else []
        words += ["fullgraph"] if settings.fullgraph else []
        if settings.dynamic is not None:
            words.append("dynamic" if settings.dynamic else "no dynamic shapes")
    if machine:
        words += [f"torch {machine.torch}"]
        cpu = [] if summary.not_in_log else [f"cpu, {plural(machine.threads, 'thread')}"]
        words += [summary.gpu] if summary.gpu else cpu
    if settings and settings.device == "cuda":
        arch = settings.arch or "cuda"
        words.append(f"{'' if summary.kernels.predicted else 'no '}code for {arch} predicted")
    calls = sum(1 for call in summary.calls if call.number)
    calls = max(calls, summary.end.calls if summary.end else 0)
    known = summary.end is not None or not (settings and settings.program)
    if calls and known:
        words.append(plural(calls, "call"))
    if settings and settings.until != "run":
        words.append(f"until {settings.until}")
    if settings and settings.defaults_from:
        words.append(f"defaults from {_beside(settings.defaults_from, settings.file)}")
    return words


def _beside(file: str, other: str) -> str:
    """A path relative to the folder of another file."""
    if not (os.path.isabs(file) and os.path.isabs(other)):
        return file
    return os.path.relpath(file, os.path.dirname(other))


def counts(summary: Summary, captured_only: bool = False) -> TextLine:
    """`3 graphs, 2 breaks · 2 causes of recompiling, 20.1 s · 39 kernels · max error 4.8e-07`.

    `captured_only`: omit what depends on the engine.
    """
    breaks, causes = len(summary.breaks), len(summary.recompiles)
    first = f"{plural(summary.graphs, 'graph')}, {plural(breaks, 'break')}"
    if not causes:
        first += ", no recompiles"
    parts = [first]
    if causes:
        took = summary.recompile_seconds
        spent = f", {seconds_text(took)}" if took is not None else ""
        cause = "1 cause" if causes == 1 else f"{causes} causes"
        parts.append(f"{cause} of recompiling{spent}")
    if not summary.findings:
        parts.append(plural(summary.guards, "guard"))
    if captured_only:
        return line(" · ".join(parts), hang=2)
    if summary.kernels.by_language:
        parts.append(kernel_count(summary))
    if summary.kernels.predicted:
        parts.append(f"{number(summary.kernels.predicted)} predicted")
    parts.append(_numerics(summary))
    return line(" · ".join(part for part in parts if part), hang=2)


def kernel_count(summary: Summary) -> str:
    """`39 kernels (27 library calls, 2 draws)`."""
    calls = calls_text(summary.kernels.by_language)
    count = plural(summary.kernels.count, "kernel")
    return f"{count} ({calls})" if calls else count


def _numerics(summary: Summary) -> str:
    numerics = summary.numerics
    if numerics is None:
        settings = summary.settings
        ran = settings is not None and settings.until == "run" and not settings.program
        return f"error {NOT_MEASURED}" if ran and summary.failure is None else ""
    return numerics_words(numerics)
