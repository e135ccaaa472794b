"""What a piece of advice changes: the source, torch's settings, the options of `torch.compile`, or
what runs before each call."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from tcw.compiler.protocol.edits import (
    Edit,
    EditError,
    by_file,
    changed,
    changes_by_file,
    diff,
    edited,
    relative,
)
from tcw.compiler.protocol.edits.source_text import SourceText, dotted
from tcw.compiler.protocol.torch_settings import MODULES, SettingError, read_setting
from tcw.compiler.trace.records import Advice, FrameStart, Settings, SourceChange
from tcw.viewers.recording import Recording
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.place import Place
from tcw.workbench.fixes.call_sites import at_calls, is_compile, parameters_at
from tcw.workbench.request.options import changed_by

_OPTIONS = ("dynamic", "fullgraph", "mode")
"""Options of `torch.compile` that a recording can set."""
_MARKS = ("mark_dynamic", "maybe_mark_dynamic", "mark_unbacked", "mark_static")
_EFFECTS = {
    "reorderable_logging_functions": "prints and logs come after the graph",
    "ignore_logging_functions": "these log calls are left out",
    "recompile_limit": "more compiled versions are kept",
    "accumulated_recompile_limit": "more compiled versions are kept",
    "suppress_errors": "what fails to compile runs eagerly",
    "use_numpy_random_stream": "NumPy's numbers come from torch's generator",
    "enable_faithful_generator_behavior": "generators run to their end at once",
    "skip_fwd_side_effects_in_bwd_under_checkpoint": "the backward repeats no side effects",
}
"""How a program behaves otherwise with a setting."""


class NotTriable(Exception):
    """Advice that is no change of a program; the message says why."""


@dataclass(frozen=True)
class Candidate:
    """Advice on a finding, and the recording with it."""

    finding: str
    """The finding's key."""
    advice: Advice
    settings: Settings
    patch: str = ""
    """What it changes in the user's files, as a unified diff."""
    effect: str = ""
    """How the program behaves otherwise with it; "" for not at all."""


def candidates(finding: Finding, recording: Recording, settings: Settings) -> list[Candidate]:
    """The advice on a finding that can be tried, in its order."""
    made = []
    for advice in (*finding.fixes, *finding.also):
        try:
            with_it = applied(advice, finding, recording, settings)
        except NotTriable:
            continue
        patch = source_patch(settings, with_it)
        effect = _effect(advice, settings, with_it)
        made.append(Candidate(finding.key, advice, with_it, patch, effect))
    return made


def applied(advice: Advice, finding: Finding, recording: Recording, settings: Settings) -> Settings:
    """The settings of a recording with the advice on a finding followed. Raises `NotTriable`."""
    place = finding.place
    if advice.changes:
        with_it = structs.replace(settings, changes=(*settings.changes, *advice.changes))
    elif advice.options and not recording.script:
        change = changed_by(settings, advice.options)
        if change.reason:
            raise NotTriable(change.reason)
        with_it = change.settings
    elif advice.edit and not advice.code:
        with_it = _edited(advice, place, settings)
    else:
        with_it = settings
    with_it = _with_code(advice, finding, recording, with_it)
    if with_it == settings:
        raise NotTriable("there is nothing to change" if not advice.code else "it is so already")
    try:
        _texts(with_it)
    except (EditError, OSError, UnicodeDecodeError) as error:
        raise NotTriable(str(error)) from error
    return with_it


def _edited(advice: Advice, place: Place | None, settings: Settings) -> Settings:
    file = relative(place.file, settings.file) if place is not None else None
    if place is None or file is None:
        raise NotTriable("it is not in a file of the user's")
    edit = str(Edit(advice.edit, place.line, file))
    return structs.replace(settings, edits=(*settings.edits, edit))


def _with_code(
    advice: Advice, finding: Finding, recording: Recording, settings: Settings
) -> Settings:
    """With the statements of the advice's code that its other fields do not stand for."""
    try:
        statements = ast.parse(advice.code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if advice.changes or advice.options:
            return settings
        raise NotTriable("its code is no statement of Python") from error
    rest: list[ast.stmt] = []
    for statement in statements:
        text = ast.unparse(statement)
        if text.startswith(tuple(f"{module}." for module in MODULES)) and _is_setting(text):
            lines = dict.fromkeys((*settings.torch_settings, read_setting(text).code))
            settings = structs.replace(settings, torch_settings=tuple(lines))
        elif (options := _compile_options(statement)) is not None:
            settings = _compiled_with(options, settings)
        else:
            rest.append(statement)
    in_changes = advice.changes and advice.place != "call"
    if not rest or in_changes or (advice.options and not recording.script):
        return settings
    where = advice.place or ("call" if advice.options or all(map(_is_mark, rest)) else "")
    where = where or ("statement" if finding.kind == "break" else "")
    if where == "call" and recording.script:
        return _in_script(rest, finding, recording, settings)
    if where == "call":
        lines = dict.fromkeys((*settings.before_calls, *map(ast.unparse, rest)))
        return structs.replace(settings, before_calls=tuple(lines))
    if where in ("statement", "above"):
        text = "\n".join(ast.unparse(statement) for statement in rest)
        change = _at_statement(text, finding.place, settings, where == "above")
        return structs.replace(settings, changes=(*settings.changes, change))
    raise NotTriable("where its code goes is only described")


def _in_script(
    lines: Sequence[ast.stmt], finding: Finding, recording: Recording, settings: Settings
) -> Settings:
    """With lines that run before each call, where a script calls what it compiles."""
    starts = {start.compile_id: start for start in recording.all(FrameStart)}
    frame = next((starts[one] for one in finding.compile_ids if one in starts), None)
    if frame is None:
        raise NotTriable("the function that is called is not known")
    try:
        parameters = parameters_at(_text_of(frame.location.file), frame.location.line)
        text = _text_of(settings.file)
        changes = at_calls(lines, text, settings.file, parameters)
    except (EditError, OSError, UnicodeDecodeError) as error:
        raise NotTriable(str(error)) from error
    return structs.replace(settings, changes=(*settings.changes, *changes))


def _text_of(file: str) -> str:
    with open(file, encoding="utf-8", newline="") as stream:
        return stream.read()


def _is_setting(text: str) -> bool:
    try:
        read_setting(text)
    except SettingError:
        return False
    return True


def _is_mark(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _MARKS


def _compile_options(statement: ast.stmt) -> dict[str, object] | None:
    """The options in `torch.compile(model, dynamic=True)`; None for another statement."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or dotted(call.func) != "torch.compile":
        return None
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    if not options or not all(
        name in _OPTIONS and isinstance(value, ast.Constant) for name, value in options.items()
    ):
        return None
    return {
        name: value.value
        for name, value in options.items()
        if name is not None and isinstance(value, ast.Constant)
    }


def _compiled_with(options: Mapping[str, object], settings: Settings) -> Settings:
    """With options at each `torch.compile` of the file; if it has none, at the recording's own."""
    changes = compile_calls(_text_of(settings.file), settings.file, options)
    if changes:
        return structs.replace(settings, changes=(*settings.changes, *changes))
    return structs.replace(settings, **options)


def compile_calls(text: str, file: str, options: Mapping[str, object]) -> list[SourceChange]:
    """Changes that give these options to every `torch.compile` of a file which lacks them. Raises
    `NotTriable` if one is written in a way that is not understood."""
    words = ", ".join(f"{name}={value!r}" for name, value in options.items())
    lines = text.split("\n")
    try:
        tree = SourceText("\n".join(line.removesuffix("\r") for line in lines)).tree
    except EditError as error:
        raise NotTriable(str(error)) from error
    inserted: dict[int, list[tuple[int, str]]] = {}
    called: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_compile(node.func):
            called.add(node.func)
            if any(keyword.arg in options for keyword in node.keywords):
                continue
            comma = ", " if node.args or node.keywords else ""
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            end = (node.end_col_offset - 1, comma + words)
            inserted.setdefault(node.end_lineno, []).append(end)
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            if decorator not in called and is_compile(decorator):
                assert decorator.end_lineno is not None
                assert decorator.end_col_offset is not None
                end = (decorator.end_col_offset, f"({words})")
                inserted.setdefault(decorator.end_lineno, []).append(end)
    changes = []
    for number, parts in inserted.items():
        line = lines[number - 1].removesuffix("\r").encode()
        for column, new in sorted(parts, reverse=True):
            line = line[:column] + new.encode() + line[column:]
        changes.append(SourceChange(file=file, line=number, end_line=number, text=line.decode()))
    return changes


def _at_statement(text: str, place: Place | None, settings: Settings, above: bool) -> SourceChange:
    """`text` in place of the statement there, or above it."""
    if place is None or relative(place.file, settings.file) is None:
        raise NotTriable("it is not in a file of the user's")
    try:
        source = SourceText(_text_of(place.file).replace("\r\n", "\n"))
        statement = _statement_from(source, place.line)
    except (EditError, OSError, UnicodeDecodeError) as error:
        raise NotTriable(str(error)) from error
    assert statement.end_lineno is not None
    first = source.lines[statement.lineno - 1]
    indent = first[: len(first) - len(first.lstrip())]
    text = "\n".join(indent + line for line in text.split("\n"))
    end = statement.lineno - 1 if above else statement.end_lineno
    return SourceChange(file=place.file, line=statement.lineno, end_line=end, text=text)


def _statement_from(source: SourceText, line: int) -> ast.stmt:
    """The statement that begins on this line, with its block, or the innermost one around it."""
    beginning = [
        node for node in ast.walk(source.tree) if isinstance(node, ast.stmt) and node.lineno == line
    ]
    statement = beginning[0] if beginning else source.statement(line)
    alone = sum(
        isinstance(node, ast.stmt) and node.lineno == statement.lineno
        for node in ast.walk(source.tree)
        if not hasattr(node, "body")
    )
    if alone > 1 or (source.lines[statement.lineno - 1][: statement.col_offset].strip()):
        raise NotTriable("several statements are on that line")
    return statement


def _texts(settings: Settings) -> dict[str, tuple[str, str]]:
    """Path of each changed file -> its text on disk and with the changes."""
    edits, changes = by_file(settings.edits, settings.file), changes_by_file(settings.changes)
    found = {}
    for file in dict.fromkeys((*edits, *changes)):
        text = _text_of(file)
        found[file] = text, changed(edited(text, edits.get(file, ())), changes.get(file, ()))
    return found


def source_patch(before: Settings, after: Settings) -> str:
    """What the second settings change in the user's files more than the first."""
    old = {file: text for file, (_, text) in _texts(before).items()}
    folder = os.path.dirname(after.file)
    parts = []
    for file, (on_disk, text) in _texts(after).items():
        name = os.path.relpath(file, folder).replace(os.sep, "/")
        parts.append(diff(name, old.get(file, on_disk), text))
    return "".join(parts)


def pasting(before: Settings, after: Settings) -> dict[str, Any]:
    """The fields of `FixTrial` that say what to do besides changing the source."""
    marks = (mark.rpartition(":") for mark in _new(before, after, "mark_dynamic"))
    lines = [f"torch._dynamo.mark_dynamic({name}, {dim})" for name, _, dim in marks]
    lines += [f"{name} = torch.tensor({name})" for name in _new(before, after, "as_tensors")]
    return {
        "settings": _new(before, after, "torch_settings"),
        "compile": {
            name: getattr(after, name)
            for name in _OPTIONS
            if getattr(after, name) != getattr(before, name)
        },
        "before_calls": (*lines, *_new(before, after, "before_calls")),
    }


def _new(before: Settings, after: Settings, name: str) -> tuple[str, ...]:
    return tuple(line for line in getattr(after, name) if line not in getattr(before, name))


def pasted(settings: Settings, base: Settings) -> dict[str, tuple[str, str]]:
    """Path of each file -> its text, and with the fix pasted: settings below the imports, options
    at `torch.compile`, which a file without one gets at its end."""
    texts = _texts(settings)
    file = os.path.abspath(settings.file)
    paste = pasting(base, settings)
    new, options = paste["settings"], paste["compile"]
    if not new and not options:
        return texts
    if file not in texts:
        text = _text_of(file)
        texts[file] = text, text
    before, text = texts[file]
    if options:
        words = ", ".join(f"{name}={value!r}" for name, value in options.items())
        text = text.rstrip("\n") + f"\nmodel = torch.compile(model, {words})\n"
    if new:
        lines = text.split("\n")
        at = _after_imports(ast.parse(text.replace("\r\n", "\n")))
        named = any(line in ("import torch", "import torch\r") for line in lines)
        lines[at:at] = [*([] if named else ["import torch"]), *new]
        text = "\n".join(lines)
    return {**texts, file: (before, text)}


def _after_imports(tree: ast.Module) -> int:
    """The line, from 0, below the last import at the top level."""
    ends = [
        node.end_lineno or 0 for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return max(ends, default=0)


def _effect(advice: Advice, before: Settings, after: Settings) -> str:
    names = [read_setting(line).name for line in _new(before, after, "torch_settings")]
    effects = [advice.effect, *(_EFFECTS.get(name, "") for name in names)]
    return ", ".join(dict.fromkeys(filter(None, effects)))


def merged(base: Settings, chosen: Sequence[Candidate]) -> tuple[Settings, list[Candidate]]:
    """All changes at once, and which fixes they are: one that contradicts an earlier one is left
    out."""
    settings, taken = base, list[Candidate]()
    for candidate in chosen:
        after = _both(base, settings, candidate.settings)
        if after is None:
            continue
        try:
            _texts(after)
        except EditError:
            continue
        settings = after
        taken.append(candidate)
    return settings, taken


def _both(base: Settings, first: Settings, second: Settings) -> Settings | None:
    joined = {}
    for name in _OPTIONS:
        values = {getattr(one, name) for one in (first, second)} - {getattr(base, name)}
        if len(values) > 1:
            return None
        joined[name] = values.pop() if values else getattr(base, name)
    lists = ("torch_settings", "mark_dynamic", "as_tensors", "edits", "changes", "before_calls")
    for name in lists:
        joined[name] = _union(getattr(first, name), getattr(second, name))
    return structs.replace(first, **joined)


def _union(first: Iterable[object], second: Iterable[object]) -> tuple[object, ...]:
    return tuple(dict.fromkeys((*first, *second)))
