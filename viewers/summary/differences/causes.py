"""Why two recordings differ: settings, versions, and edited source lines, as far as they matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from viewers.places import FileNames
from viewers.summary.differences.alignment import Alignment, Line
from viewers.summary.differences.figures import SettingChange

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
    text: tuple[str, ...]
    """The run's lines, or the base's if the run has none."""

    def covers(self, line: Line) -> bool:
        """Whether a line of the run, or a base's line that is gone, is one of them."""
        file, number = line
        gone = file.endswith("\n")
        return number in (self.before if gone else self.after) and (gone or file == self.file)


def edits_of(alignment: Alignment) -> tuple[Edit, ...]:
    """All edits of files that both recordings carry."""
    found = []
    for name in alignment.base.files:
        file = alignment.file(name)
        before, after = alignment.base.source(name), alignment.run.source(file)
        if not after or before == after:
            continue
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                continue
            text = tuple(after[j1:j2] or before[i1:i2])
            found.append(Edit(file, range(i1 + 1, i2 + 1), range(j1 + 1, j2 + 1), text))
    return tuple(found)


class Causes:
    """Finds the cause of an effect at a place. `lines`: where effects were seen, which tells an
    edit that matters from a comment."""

    def __init__(
        self,
        edits: Sequence[Edit],
        settings: Sequence[SettingChange],
        versions: Sequence[SettingChange],
        lines: Sequence[Line],
        names: FileNames,
    ) -> None:
        self._edits = [one for one in edits if any(one.covers(line) for line in lines)]
        self._lines = lines
        self._given = [*settings, *versions]
        self._names = names

    def of(self, *lines: Line) -> str:
        """The edit at one of these lines; else the settings or versions that differ; else the only
        edit that matters. "" if that leaves several, or none."""
        for line in lines:
            for edit in self._edits:
                if edit.covers(line):
                    return self._words(edit, line[1])
        if self._given:
            return ", ".join(f"{one.name} {one.before} → {one.after}" for one in self._given)
        if len(self._edits) != 1:
            return ""
        only = self._edits[0]
        seen = [line for line in self._lines if only.covers(line)]
        return self._words(only, seen[0][1])

    def _words(self, edit: Edit, number: int) -> str:
        what = "new" if not edit.before else "gone" if not edit.after else "edited"
        here = edit.after or edit.before
        text = edit.text[number - here.start].strip() if number in here else ""
        text = text[:_MOST_TEXT] + ("…" if len(text) > _MOST_TEXT else "")
        return f"{self._names.place(edit.file, number)} is {what}: {text}"
