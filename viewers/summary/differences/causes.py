"""Why two recordings differ: settings, versions, and edited source lines, as far as they matter."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine
from tcw.viewers.summary.differences.figures import SettingChange
from tcw.viewers.summary.differences.lines import gaps, matches
from tcw.viewers.syntax import statements

_MOST_TEXT = 80
"""Characters of a source line that are quoted."""
_LEAST_TEXT = 30
"""Of these, before and after where an edit begins, in a longer line."""


@dataclass(frozen=True)
class EditedLines:
    """Lines of a file that only one side has, next to each other."""

    file: str
    """The file's name in the run."""
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
        return at.file == self.file and at.line in (self.before if at.gone else self.after)

    @property
    def first(self) -> MatchedLine:
        """Its first line that says something."""
        side, lines = (self.added, self.after) if self.added else (self.removed, self.before)
        at = next((n for n, text in enumerate(side) if _is_code(text)), 0)
        return MatchedLine(self.file, lines.start + at, gone=not self.added)

    @property
    def is_code(self) -> bool:
        """Whether it is more than comments and blank lines."""
        return any(map(_is_code, (*self.removed, *self.added)))


def _is_code(text: str) -> bool:
    return bool(text.strip()) and not text.lstrip().startswith("#")


def edits_of(alignment: Alignment) -> tuple[EditedLines, ...]:
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
            found.append(EditedLines(file, lines[0], lines[1], texts[0], texts[1]))
    return tuple(found)


class Causes:
    """Finds the cause of an effect at a place. `lines`: where effects were seen, which tells an
    edit that matters from others; an edit above a call into a library is not among them."""

    def __init__(
        self,
        alignment: Alignment,
        settings: Sequence[SettingChange],
        versions: Sequence[SettingChange],
        lines: Sequence[MatchedLine],
    ) -> None:
        edits = [edit for edit in edits_of(alignment) if edit.is_code]
        self._others = edits
        self._captured = _captured_functions(alignment)
        self._defined = _definitions(alignment, {edit.file for edit in edits})
        self._edits = [edit for edit in edits if any(edit.covers(line) for line in lines)]
        self._lines = lines
        self._given = [*settings, *versions]
        self._alignment = alignment

    def of(self, *lines: MatchedLine, module: str = "") -> str:
        """The edit at one of these lines, or where the module was made; else the settings or
        versions that differ; else the only edit at a line of an effect, if no definition was
        edited; else the only one in a function that was captured, or at all. "" if that leaves
        several, or none."""
        for line in lines:
            for edit in self._edits:
                if edit.covers(line):
                    return self._words(edit, line)
        for name in reversed(module.split(".")):
            made = [
                (edit, at)
                for at in self._defined.get(name, ())
                for edit in self._others
                if edit.covers(at)
            ]
            if len({edit for edit, _ in made}) == 1:
                return self._words(*made[0])
        if self._given:
            return ", ".join(
                f"{change.name} {change.before or 'default'} → {change.after or 'default'}"
                for change in self._given
            )
        defined = {line for found in self._defined.values() for line in found}
        known = [
            edit for edit in self._others if edit in self._edits or any(map(edit.covers, defined))
        ]
        if len(known) == 1 and known == self._edits:
            only = known[0]
            return self._words(only, next(line for line in self._lines if only.covers(line)))
        if self._edits:
            return ""
        inside = [other for other in self._others if other.first in self._captured]
        left = inside or self._others
        return self._words(left[0], left[0].first) if len(left) == 1 else ""

    def _words(self, edit: EditedLines, at: MatchedLine) -> str:
        what = "gone" if at.gone else "edited" if edit.before else "new"
        lines, text = (edit.before, edit.removed) if at.gone else (edit.after, edit.added)
        place = at.line - lines.start
        other = edit.added if at.gone else edit.removed
        before = other[place].strip() if len(other) == len(text) else ""
        words = f"{self._alignment.words(at)} is {what}"
        code = text[place].strip()  # none in a redacted trace
        return f"{words}: {_quoted(code, before)}" if code else words


def _quoted(text: str, before: str) -> str:
    """A part of a line that shows its difference from the line before the edit."""
    pairs = enumerate(zip(text, before, strict=False))
    start = next((at for at, (one, other) in pairs if one != other), min(len(text), len(before)))
    if start + _LEAST_TEXT <= _MOST_TEXT or len(text) <= _MOST_TEXT:
        start = 0
    else:
        start = max(0, min(start - _LEAST_TEXT, len(text) - _MOST_TEXT))
    shown = text[start : start + _MOST_TEXT]
    return ("…" if start else "") + shown + ("…" if start + len(shown) < len(text) else "")


def _captured_functions(alignment: Alignment) -> set[MatchedLine]:
    """Every line of the functions of which captured graphs hold a line, on either side."""
    found: set[MatchedLine] = set()
    for recording, gone in ((alignment.base, True), (alignment.run, False)):
        lines: dict[str, set[int]] = {}
        for graph in recording.graphs.values():
            for node in graph.nodes if graph.kind == "captured" else ():
                if node.location is not None:
                    lines.setdefault(node.location.file, set()).add(node.location.line)
        for file, seen in lines.items():
            name = alignment.file(file) if gone else file
            for span in _functions("\n".join(recording.source(file))):
                if seen & set(span):
                    found |= {MatchedLine(name, line, gone) for line in span}
    return found


def _definitions(alignment: Alignment, files: Collection[str]) -> dict[str, list[MatchedLine]]:
    """The lines of either side that set attributes of objects, by name, in these files."""
    found: dict[str, list[MatchedLine]] = {}
    for file in files:
        sides = ((alignment.run, file, False), (alignment.base, alignment.base_file(file), True))
        for recording, name, gone in sides:
            for node in ast.walk(statements("\n".join(recording.source(name)))):
                if not isinstance(node, ast.Assign):
                    continue
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                        at = [MatchedLine(file, line, gone) for line in lines]
                        found.setdefault(target.attr, []).extend(at)
    return found


def _functions(source: str) -> list[range]:
    """The lines of each function."""
    return [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(statements(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
