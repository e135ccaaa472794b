"""`--markdown` of a recording: the verdict, the findings with their lines and fixes, then, folded,
what `--show` has of it, and where it was recorded; of a folder of recordings, one a process, also
what each did differently."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from tcw.compiler.trace.records import Environment, Settings, TorchSettings
from tcw.viewers.command_line import command_line
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.spans import words_of
from tcw.viewers.losses import losses_sentences
from tcw.viewers.markdown import MARKER, RUN_MARKER
from tcw.viewers.markdown.comment import Comment, code, escaped, fenced
from tcw.viewers.markdown.items import effect_items, fix_rows, item, item_title
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary
from tcw.viewers.summary.findings import Finding
from tcw.viewers.text.explain import Parts, evidence_lines, nothing_lines, warning_lines
from tcw.viewers.text.header import counts, engines_header, failure_lines, file_name, settings_words
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.processes import EFFECTS, REPORTS, Several, otherwise, who
from tcw.viewers.text.ranks import ranks_lines
from tcw.viewers.text.sections import section
from tcw.viewers.words import listed, plural

WIDTH = 100
"""Columns of what is shown as in the terminal."""
WHOLE = 10
"""Findings shown with line and fix; the rest are listed."""
_FOLDED = (
    "breaks", "recompiles", "fusion", "kernels", "memory", "phases", "caches", "cudagraphs",
    "guards", "autograd",
)  # fmt: skip
"""Sections shown without `--show`, the first ones first where not all fit."""


def report(recording: Recording, show: Sequence[str] = ()) -> str:
    """`show`: the sections to fold below the findings, as of `tcw explain --show`; else all that
    have something to say."""
    mark, words = heading(recording)
    comment = Comment(MARKER, f"{mark} tcw explain: {words}")
    add_findings(comment, recording)
    add_sections(comment, recording, show)
    comment.fold("environment", environment_items(recording))
    return comment.text(elsewhere(recording))


def heading(recording: Recording) -> tuple[str, str]:
    """A mark, and the file with its verdict, as Markdown."""
    parts = Parts(recording)
    first, findings = parts.first, parts.findings
    tone = first.verdict.tone
    mark = "❌" if tone in ("failed", "lost") else "⚠️" if findings else "✅"
    said = [] if parts.comparison else [first.verdict.headline]
    said += [plural(len(findings), "finding")] if findings else []
    words = "; ".join(said) or "nothing needs attention"
    return mark, f"{code(file_name(first))}: {escaped(words)}"


def add_findings(comment: Comment, recording: Recording) -> None:
    """What is visible below the heading: counts, findings, compile time."""
    parts = Parts(recording)
    first, findings = parts.first, parts.findings
    names = first.names
    _head(comment, parts)
    for one, summary in zip(parts.recordings, parts.summaries, strict=True):
        if summary.verdict.tone == "failed":
            rows = to_text(failure_lines(one, summary, names, WIDTH), WIDTH)
            comment.add([*fenced(rows.splitlines()), ""], "the failure")
    _findings(comment, findings, names)
    if not findings and first.verdict.tone != "failed":
        said = [f"- {escaped(line.text)}" for line in nothing_lines(first)]
        comment.add([*said, ""], "what was left to Python")
    if parts.comparison is None:  # the engines' are in their table
        comment.add(_bullets(first), "compile time")


def _head(comment: Comment, parts: Parts) -> None:
    first = parts.first
    if parts.comparison is None:
        detail = first.verdict.detail.text
        said = [detail] if detail and first.verdict.tone != "failed" else []
        said.append(counts(first).text)
        comment.add([*(f"{escaped(one)}\\" for one in said)], "the counts")
        comment.add([escaped(" · ".join(settings_words(first))), ""], "the settings")
    else:
        rows = to_text(engines_header(parts.comparison, first, WIDTH), WIDTH)
        comment.add([*fenced(rows.splitlines()), ""], "the engines")
    for words in dict.fromkeys([*losses_sentences(parts.recording), *parts.missing]):
        comment.add([f"> {escaped(words)}", ""], "what the recording lacks")


def _findings(comment: Comment, findings: Sequence[Finding], names: FileNames) -> None:
    for number, finding in enumerate(findings[:WHOLE], 1):
        also = [row for advice in finding.also for row in fix_rows(advice)]
        comment.add(item(number, finding, names, also), finding.title)
    rest = findings[WHOLE:]
    if rest:
        comment.fold(
            plural(len(rest), "more finding"), [f"- {item_title(one, names)}" for one in rest]
        )


def _bullets(summary: Summary) -> list[str]:
    """What the terminal shows below the findings."""
    lines = [*evidence_lines(summary), *warning_lines(summary)]
    items = []
    for line in lines:
        (label, _role), *rest = line.spans
        items.append(f"- {escaped(label)}: {escaped(words_of(tuple(rest)))}".replace("- : ", "- "))
    return [*items, ""] if items else []


def add_sections(
    comment: Comment, recording: Recording, show: Sequence[str] = (), whose: str = ""
) -> None:
    """What is folded. `whose`: one process of several, named in each title."""
    parts = Parts(recording)
    root = parts.first.names.root
    failed = any(summary.failure is not None for summary in parts.summaries)
    usual = [*(["output"] if failed else []), *(["engines"] if parts.comparison else []), *_FOLDED]
    for wanted in show or usual:
        name = wanted.partition("=")[0]
        for engine, view in parts.views(wanted, WIDTH):
            lines = section(name)(view)
            if len(lines) < 2 and not show:
                continue  # a heading: nothing is recorded of it
            title = ", ".join(filter(None, (name, engine)))
            rows = to_text(_without_paths(lines, root), WIDTH).splitlines()
            comment.fold_text(f"{whose}: {title}" if whose else title, rows)


def _without_paths(lines: Sequence[TextLine], root: str) -> list[TextLine]:
    """Files below the model's folder by their short names, in torch's messages too."""
    if not root.strip("/"):
        return list(lines)
    return [
        replace(
            line, spans=tuple((words.replace(f"{root}/", ""), role) for words, role in line.spans)
        )
        for line in lines
    ]


def environment_items(recording: Recording, verb: str = "explain") -> list[str]:
    """The command, the versions, the machine and the changed settings, an item each. Paths are
    short: a report is for others."""
    start, machine = recording.start, recording.environment
    items: list[tuple[str, str]] = []
    if start is not None:
        if not start.settings.program and not start.settings.redacted:
            items.append(("command", command(start.settings, verb=verb)))
        items += [("tcw", start.tool_version), ("python", start.python)]
        items.append(("platform", start.platform))
    items += _machine(machine) if machine is not None else []
    lines = [f"- {name}: {code(value)}" for name, value in items if value]
    for record in recording.all(TorchSettings):
        lines += [f"- the file sets {code(' = '.join(one))}" for one in record.changed.items()]
    return lines


def _machine(machine: Environment) -> list[tuple[str, str]]:
    cpu = ", ".join(one for one in (machine.cpu, machine.vector) if one)
    return [
        ("torch", machine.torch),
        ("triton", machine.triton),
        ("compiler", machine.compiler),
        ("cpu", f"{cpu}, {plural(machine.threads, 'thread')}".removeprefix(", ")),
        ("gpu", machine.gpu),
    ]


def command(settings: Settings, options: Sequence[str] = (), verb: str = "explain") -> str:
    """The command line of the recording, with the file's name for its path."""
    if not settings.redacted:
        settings = structs.replace(settings, file=os.path.basename(settings.file))
    return command_line(verb, settings, options)


def elsewhere(recording: Recording) -> str:
    """Where to find what a comment has no room for, as Markdown."""
    settings = recording.settings
    if settings is None or settings.program:
        return "`tcw open` shows it from the trace."
    return f"{code(command(settings, ['--show', 'SECTION']))} shows it, as does `tcw open TRACE`."


UNCUT = 300
"""Cells of a line of the text's that becomes an item: it is not cut."""


def processes_markdown(several: Several) -> str:
    groups = several.groups
    headings = [heading(members[0].recording) for members in groups]
    marks = [mark for mark, _ in headings]
    mark = next((one for one in ("❌", "⚠️") if one in marks), "✅")
    comment = Comment(RUN_MARKER, f"{mark} tcw run: {escaped(several.headline)}")
    head = ("process", "program", "compiled", "ended")
    rows = [tuple(map(escaped, row)) for row in several.rows]
    comment.table(head, rows, "processes")
    if several.unread:
        comment.add([escaped(several.unread_words), ""], "logs that were not decoded")
    lines = ranks_lines(several.ranks, several.names, UNCUT)
    items = [f"- {escaped(line.text.strip())}" for line in lines if line.text.strip()]
    if items:
        comment.add(["**ranks**", "", *items, ""], "ranks")
    for members in groups[1:REPORTS]:
        effects, others = otherwise(groups[0][0], members[0])
        items = effect_items(effects, EFFECTS) or [f"- {escaped(other)}" for other in others]
        title = f"{who(members)} against {groups[0][0].name}"
        comment.add([f"**{escaped(title)}**", "", *items, ""], title)
    for members, (its_mark, words) in list(zip(groups, headings, strict=True))[:REPORTS]:
        whose = f"{escaped(who(members))}: " if len(groups) > 1 else ""
        comment.add([f"#### {its_mark} {whose}{words}", ""], who(members))
        add_findings(comment, members[0].recording)
    if len(groups) > REPORTS:
        left = [member.file.name for members in groups[REPORTS:] for member in members]
        comment.add([f"Not shown: {escaped(listed(left))}", ""], "what is not shown")
    for members in groups[:REPORTS]:
        whose = who(members) if len(groups) > 1 else ""
        add_sections(comment, members[0].recording, whose=whose)
    comment.fold("environment", environment_items(groups[0][0].recording))
    return comment.text("`tcw explain FOLDER` shows it; `tcw open` shows each trace.")
