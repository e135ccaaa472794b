"""The text of `tcw explain`: the summary on one screen, then the sections asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cached_property

from rich.cells import cell_len

from tcw.compiler.trace.records import DdpBuckets, FixTrial
from tcw.viewers.collected import grouped
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.cells import cut
from tcw.viewers.kit.lines import BLANK, TextLine, fitted, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.losses import losses_sentences
from tcw.viewers.plain import plain
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.cudagraphs import cudagraph_words
from tcw.viewers.summary.engine_comparison import compare
from tcw.viewers.summary.findings import Finding, findings_of_both
from tcw.viewers.summary.fixes import is_command, result_words, together, words
from tcw.viewers.summary.ranks.collectives import started
from tcw.viewers.tables.findings import finding_lines, role_of
from tcw.viewers.text.header import counts, engines_header, failure_lines, header, title
from tcw.viewers.text.sections import OF_BOTH, SectionView, section
from tcw.viewers.text.sections.collectives import counted
from tcw.viewers.text.sections.compiled import fusion_line
from tcw.viewers.words import NOT_IN_LOG, bytes_text, listed, plural, seconds_text

MARGIN = 12
"""Screen lines not available for findings: title, verdict, counts, evidence, footer."""


def explain(
    recording: Recording,
    width: int = 100,
    height: int = 40,
    show: Sequence[str] = (),
    trace: str = "",
) -> list[TextLine]:
    """The lines of the summary for a terminal of `width` × `height` cells.

    `show`: names of `SECTIONS`, optionally with a detail (`guards=all`); `trace`: the file that has
    the recording, if it was kept.
    """
    width = max(80, min(width, 300))
    parts = Parts(recording)
    first, names, both = parts.first, parts.first.names, parts.comparison is not None
    lines = _head(parts, width)
    lines += [line((words, "warn"), hang=2) for words in losses_sentences(parts.recording)]
    lines += [line((text, "warn"), hang=2) for text in parts.missing]
    failed = not both and first.verdict.tone == "failed"
    for one, summary in zip(parts.recordings, parts.summaries, strict=True):
        if both and summary.failure is not None:
            lines += [BLANK, *failure_lines(one, summary, names, width)]
    lines += findings_lines(parts.findings, names, width, max(8, height - MARGIN))
    lines += fixes_lines(first, parts.recording)
    if not parts.findings and not failed:
        lines += nothing_lines(first)
    evidence = [] if both else [*evidence_lines(first), *_sent(parts.recording)]
    lines += [BLANK, *evidence] if evidence and first.findings else evidence
    for engine, summary in zip(parts.engines, parts.summaries, strict=True):
        notes = warning_lines(summary)
        lines += [line((engine, "accent")), *notes] if notes and both else notes
    for wanted in show:
        for engine, view in parts.views(wanted, width):
            if engine and wanted.startswith("decisions") and not view.recording.decisions.decided:
                continue
            title = [line((engine, "strong"))] if engine else []
            lines += [BLANK, *title, *section(wanted.partition("=")[0])(view)]
    return [*lines, BLANK, _footer(first, show, trace, ("engines",) if both else ())]


def _head(parts: Parts, width: int) -> list[TextLine]:
    """Title, verdict and counts; of both engines their table, too."""
    first = parts.first
    if parts.comparison is not None:
        return engines_header(parts.comparison, first, width)
    if first.verdict.tone != "failed":
        return header(first)
    lines = failure_lines(parts.recording, first, first.names, width)
    lines += [BLANK, title(first)] if first.settings else []
    return [*lines, counts(first)] if first.graphs or first.breaks else lines


def nothing_lines(summary: Summary) -> list[TextLine]:
    if summary.graphs:
        until = summary.settings.until if summary.settings else "run"
        where = "" if until == "run" else f" up to {until}"
        return [line(f"nothing needs attention{where}{'' if summary.end else ' so far'}")]
    if not summary.skipped:
        return [line("torch.compile was given no frame")]
    lines = [line(f"{plural(len(summary.skipped), 'frame')} left to Python:")]
    for frame in summary.skipped[:6]:
        where = summary.names.place(frame.location.file, frame.location.line)
        lines.append(line(f"  {where}  {frame.function}  ", (frame.reason, "dim"), hang=4))
    return lines


def fixes_lines(summary: Summary, recording: Recording) -> list[TextLine]:
    """What all fixes together come to; or that the fixes shown were not tried."""
    trial = together(recording)
    if trial is not None:
        role: Role = "good" if trial.kept else "dim"
        worse = f" ({trial.reason})" if trial.reason else ""
        counts = result_words(trial) or "not known"
        said = ", ".join(filter(None, (counts, words(trial).split(", ")[-1])))
        return [BLANK, line(("with all fixes  ", role), said + worse, hang=2)]
    ideas = any(
        advice.by == "tcw" and not is_command(advice)
        for finding in summary.findings
        for advice in finding.fixes
    )
    if not ideas or recording.all(FixTrial) or summary.end is None:
        return []
    settings = summary.settings
    why = ""
    if summary.not_in_log:
        why = ": nothing is run again for a log"
    elif settings is not None and settings.program:
        why = ": a program is not run again for its recording"
    return [line((f"ideas are not tried{why}", "dim"), hang=2)]


def evidence_lines(summary: Summary) -> list[TextLine]:
    """Fusion, compile time, caches and CUDA graphs, one line each, as far as recorded."""
    lines = []
    if summary.fusion.graphs:
        text = fusion_line(summary.fusion.fused, summary.fusion.rejected)
        lines.append(line(("fusion   ", "dim"), text, hang=9))
    if summary.stages:
        total = sum(stage.seconds for stage in summary.stages)
        parts = [
            f"{stage.stage} {seconds_text(stage.seconds)}"
            for stage in summary.stages
            if stage.seconds >= total / 50
        ]
        text = f"{seconds_text(total)}: {' · '.join(parts)}"
        lines.append(line(("compile  ", "dim"), text, hang=9))
    lines += _predicted(summary)
    asked = [cache for cache in summary.caches if cache.hits or cache.misses]
    if asked:
        parts = [
            f"{cache_use.cache} {cache_use.hits} of {cache_use.hits + cache_use.misses} hit"
            for cache_use in asked
        ]
        saved = max((cache_use.saved_seconds or 0.0 for cache_use in asked), default=0.0)
        parts += [f"{seconds_text(saved)} of compiling saved"] if saved else []
        lines.append(line(("caches   ", "dim"), " · ".join(parts), hang=9))
    if summary.cudagraphs:
        lines.append(line(("replays  ", "dim"), cudagraph_words(summary.cudagraphs), hang=9))
    return lines


def _sent(recording: Recording) -> list[TextLine]:
    """What ranks send to each other, if this is one of them."""
    found = started(recording)
    if not found:
        return []
    parts = [counted(found)]
    cuts = grouped(
        (tuple(bytes_text(bucket.bytes) for bucket in record.buckets), record.compile_id)
        for record in recording.all(DdpBuckets)
        if len(record.buckets) > 1
    )
    for sizes, compiles in cuts.items():
        alike = len(set(sizes)) == 1
        buckets = f"{len(sizes)} buckets of {sizes[0]}" if alike else f"buckets of {listed(sizes)}"
        parts.append(f"DDP cut {listed(compiles)} into {buckets}")
    return [line(("comm     ", "dim"), " · ".join(parts), hang=9)]


def _predicted(summary: Summary) -> list[TextLine]:
    """What the kernels predicted for a GPU would need."""
    binaries = [binary for row in summary.kernels.rows for binary in row.binaries]
    if not binaries:
        return []
    made = [binary for binary in binaries if not binary.error]
    registers = [binary.registers for binary in made if binary.registers is not None]
    spills = [binary.spill_bytes for binary in made if binary.spill_bytes is not None]
    archs = list(dict.fromkeys(binary.arch for binary in binaries))
    facts = [f"{plural(len(made), 'kernel')} predicted for {listed(archs)}"]
    if registers:
        facts.append(f"at most {max(registers)} registers")
    if spills:
        spilled = sum(bool(size) for size in spills)
        facts.append(f"{plural(spilled, 'kernel')} spill" if spilled != 1 else "1 kernel spills")
    if len(made) < len(binaries):
        facts.append(f"{len(binaries) - len(made)} not compiled")
    return [line(("gpu      ", "dim"), " · ".join(facts), hang=9)]


def warning_lines(summary: Summary) -> list[TextLine]:
    """What this recording lacks: hooks that this torch does not support, then our own warnings."""
    hooks = summary.environment.hooks if summary.environment else ()
    said = [f"{NOT_IN_LOG}: {', '.join(summary.not_in_log)}"] if summary.not_in_log else []
    said += [f"not recorded: {hook.offers}: {hook.reason}" for hook in hooks if not hook.available]
    others = (warned.message for warned in summary.warnings if not warned.asked)
    messages = list(dict.fromkeys([*said, *others]))
    lines = [line(("note     ", "dim"), message, hang=9) for message in messages[:3]]
    if len(messages) > 3:
        more = plural(len(messages) - 3, "more note")
        lines.append(line((f"         … {more} in the trace", "dim")))
    return lines


def _footer(summary: Summary, show: Sequence[str], trace: str, first: Sequence[str]) -> TextLine:
    has: dict[str, object] = {
        **dict.fromkeys(first, True),
        "output": summary.failure,
        "fixes": any(finding.trials for finding in summary.findings),
        "breaks": summary.breaks,
        "guards": summary.guards,
        "kernels": summary.kernels.rows,
        "graphs": summary.compiles and not summary.kernels.rows,
        "fusion": summary.fusion.graphs,
    }
    shown = {name.partition("=")[0] for name in show}
    more = ",".join(name for name, there in has.items() if there and name not in shown)
    program = summary.settings is not None and summary.settings.program and not summary.not_in_log
    unkept = 'keep it: tcw.record("run.tcw")' if program else "keep it: --trace run.tcw"
    keep = f"browse it: tcw open {shlex.quote(trace)}" if trace else unkept
    gap = "    "
    text = f"more: --show {more}" if more and not program else ""
    return line((gap.join(filter(None, [text, keep])), "dim"), hang=2)


class Parts:
    """The parts of two engines that can be compared; else the one that a report is of."""

    def __init__(self, recording: Recording) -> None:
        self.comparison = compare(recording)
        columns = self.comparison.columns if self.comparison is not None else ()
        # an engine whose part has only begun, or in which the recording ended
        alone = next(iter(recording.engines.values()), recording)
        self.recording = recording if columns else alone
        self.recordings = [column.recording for column in columns] or [alone]
        self.summaries = [column.summary for column in columns] or [summarise(alone)]
        self.engines = [column.engine for column in columns] or [""]

    @property
    def first(self) -> Summary:
        return self.summaries[0]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return findings_of_both(self.first.findings, self.summaries[-1].findings)

    @property
    def missing(self) -> list[str]:
        """What an option asked for but the recording lacks."""
        return list(dict.fromkeys(text for summary in self.summaries for text in summary.missing))

    def views(self, wanted: str, width: int) -> list[tuple[str, SectionView]]:
        """What section `wanted` (`guards=all`) is drawn from, with the name of its engine: "" if
        there is one, or if both share it."""
        name, _, detail = wanted.partition("=")
        parts = list(zip(self.engines, self.recordings, self.summaries, strict=True))
        if name in OF_BOTH:
            source = self.recording if name == "engines" else self.recordings[0]
            parts = [("", source, self.first)]
        others = self.recordings[::-1] if len(parts) == 2 else [None]
        return [
            (engine, SectionView(recording, summary, width, detail, other))
            for (engine, recording, summary), other in zip(parts, others, strict=True)
        ]


def findings_lines(
    findings: Sequence[Finding], names: FileNames, width: int, room: int
) -> list[TextLine]:
    """The findings in at most `room` lines: the costliest in full, as many as fit, the others on
    one line each, then a count of the rest."""
    costs = [_cost(finding) for finding in findings]
    column = 3 + max([8, *map(len, costs)]) + 2
    full = [
        finding_lines(finding, names, width, cost, column)
        for finding, cost in zip(findings, costs, strict=True)
    ]
    sizes = [len(fitted(lines, width)) for lines in full]
    whole = len(full)
    while whole > 1 and sum(sizes[:whole]) + len(full) - whole > room:
        whole -= 1
    lines = [text_line for lines in full[:whole] for text_line in lines]
    left = max(1, room - sum(sizes[:whole]))
    rest = findings[whole:]
    shown = rest if len(rest) <= left else rest[: left - 1]
    for finding, cost in zip(shown, costs[whole:], strict=False):
        lines.append(_short(finding, names, cost, column, width))
    if len(shown) < len(rest):
        more = rest[len(shown) :]
        sections = dict.fromkeys(
            "recompiles" if one.kind == "recompile" else "breaks" for one in more
        )
        text = f"…  {plural(len(more), 'more finding')}: --show {','.join(sections)}"
        lines.append(line((text, "dim")))
    return [BLANK, *lines] if lines else []


def _short(finding: Finding, names: FileNames, cost: str, column: int, width: int) -> TextLine:
    """One line: cost, title, place. For a long title, the folders of the place are left out; then
    the title is cut."""
    place = finding.place
    where = f"  {names.place(place.file, place.line)}" if place else ""
    head = (finding.glyph + "  " + cost).ljust(column)
    whole = plain(finding.title)
    if "/" in where and column + cell_len(whole) + cell_len(where) > width:
        where = "  …/" + where.rpartition("/")[2]
    title = cut(whole, max(8, width - column - cell_len(where)))
    return line((head, role_of(finding)), title, (where, "dim"), fixed=True)


def _cost(finding: Finding) -> str:
    """Pad a cost: seconds are right-aligned, words left-aligned."""
    return finding.cost.rjust(6) if finding.cost[:1].isdigit() else finding.cost
