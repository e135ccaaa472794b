"""`--markdown` of a folder of recordings, one a process: what each compiled, what the others did
differently, and a report of those that compiled the same."""

from __future__ import annotations

from tcw.viewers.markdown import RUN_MARKER
from tcw.viewers.markdown.effects import effect_items
from tcw.viewers.markdown.report import add_findings, add_sections, environment_items, heading
from tcw.viewers.markdown.text import Comment, escaped
from tcw.viewers.text.processes import EFFECTS, REPORTS, Several, otherwise, who
from tcw.viewers.text.ranks import ranks_lines
from tcw.viewers.words import listed

WIDTH = 300
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
    lines = ranks_lines(several.ranks, several.names, WIDTH)
    items = [f"- {escaped(one.text.strip())}" for one in lines if one.text.strip()]
    if items:
        comment.add(["**ranks**", "", *items, ""], "ranks")
    for members in groups[1:REPORTS]:
        effects, others = otherwise(groups[0][0], members[0])
        items = effect_items(effects, EFFECTS) or [f"- {escaped(one)}" for one in others]
        title = f"{who(members)} against {groups[0][0].name}"
        comment.add([f"**{escaped(title)}**", "", *items, ""], title)
    for members, (its_mark, words) in list(zip(groups, headings, strict=True))[:REPORTS]:
        whose = f"{escaped(who(members))}: " if len(groups) > 1 else ""
        comment.add([f"#### {its_mark} {whose}{words}", ""], who(members))
        add_findings(comment, members[0].recording)
    if len(groups) > REPORTS:
        left = [one.file.name for members in groups[REPORTS:] for one in members]
        comment.add([f"Not shown: {escaped(listed(left))}", ""], "what is not shown")
    for members in groups[:REPORTS]:
        whose = who(members) if len(groups) > 1 else ""
        add_sections(comment, members[0].recording, whose=whose)
    comment.fold("environment", environment_items(groups[0][0].recording))
    return comment.text("`tcw explain FOLDER` shows it; `tcw open` shows each trace.")
