"""Why two recordings differ: settings, versions, and edited source lines, as far as they matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewers.places import FileNames
from viewers.summary.differences.alignment import Alignment, MatchedLine
from viewers.summary.differences.figures import SettingChange
from viewers.summary.differences.lines import gaps, matches

_MOST_TEXT = 80
"""Characters of a source line that are quoted."""


@dataclass(frozen=True)
class Edit:
    """Lines of a file that only one side has, next to each other."""

    file: str
    """As the run calls it."""
    before: range
    """Lines of the base, from 1; may be empty."""
    after: range
    """Lines of the run."""
    removed: tuple[str, ...]
    """The base's lines."""
    added: tuple[str, ...]
    """The run's."""

    def covers(self, at: MatchedLine) -> bool:
        """Whether a line is one of them."""
        if at.gone:
            return at.line in self.before
        return at.file == self.file and at.line in self.after


def edits_of(alignment: Alignment) -> tuple[Edit, ...]:
    """All edits of files that both recordings carry."""
    found = []
    for name in alignment.base.files:
        file = alignment.file(name)
        before, after = alignment.base.source(name), alignment.run.source(file)
        if not after or before == after:
            continue
        for one, other in gaps(matches(before, after), len(before), len(after)):
            lines = [range(part.start + 1, part.stop + 1) for part in (one, other)]
            texts = [
                tuple(side[at] for at in part) for side, part in ((before, one), (after, other))
            ]
            found.append(Edit(file, lines[0], lines[1], texts[0], texts[1]))
    return tuple(found)


class Causes:
    """Finds the cause of an effect at a place. `lines`: where effects were seen, which tells an
    edit that matters from a comment."""

    def __init__(
        self,
        edits: Sequence[Edit],
        settings: Sequence[SettingChange],
        versions: Sequence[SettingChange],
        lines: Sequence[MatchedLine],
        names: FileNames,
    ) -> None:
        self._edits = [one for one in edits if any(one.covers(line) for line in lines)]
        self._lines = lines
        self._given = [*settings, *versions]
        self._names = names

    def of(self, *lines: MatchedLine) -> str:
        """The edit at one of these lines; else the settings or versions that differ; else the only
        edit that matters. "" if that leaves several, or none."""
        for line in lines:
            for edit in self._edits:
                if edit.covers(line):
                    return self._words(edit, line)
        if self._given:
            return ", ".join(
                f"{one.name} {one.before or 'default'} → {one.after or 'default'}"
                for one in self._given
            )
        if len(self._edits) != 1:
            return ""
        only = self._edits[0]
        return self._words(only, next(line for line in self._lines if only.covers(line)))

    def _words(self, edit: Edit, at: MatchedLine) -> str:
        what = "gone" if at.gone else "edited" if edit.before else "new"
        lines, text = (edit.before, edit.removed) if at.gone else (edit.after, edit.added)
        quoted = text[at.line - lines.start].strip()
        quoted = quoted[:_MOST_TEXT] + ("…" if len(quoted) > _MOST_TEXT else "")
        return f"{self._names.place(at.file, at.line)} is {what}: {quoted}"
