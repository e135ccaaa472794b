"""Edits of the user's files, on copies in memory: the files themselves are never changed.

The file that is run is compiled from its edited text; files that it imports are read through our
own finder; `linecache` has the edited lines, so that source listings match the code that ran. No
torch.
"""

from __future__ import annotations

import importlib.util
import io
import linecache
import os
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from tcw.compiler.control.user_error import UserError
from tcw.compiler.graphs.lines import is_users_own
from tcw.compiler.protocol.edits import (
    EditError,
    by_file,
    changed,
    changes_by_file,
    edited,
)
from tcw.compiler.trace.records import Location, Settings

_texts: dict[str, str] = {}
"""Absolute path -> edited text, of the current run."""


def edited_texts(settings: Settings) -> dict[str, str]:
    """Absolute path -> edited text, for each file that the settings edit. Raises `UserError` if a
    file cannot be read, or has no such statement."""
    found: dict[str, str] = {}
    try:
        files = by_file(settings.edits, settings.file)
    except EditError as error:
        raise UserError(f"--edit {error}", type="BadEdit", doing="editing") from error
    changes = changes_by_file(settings.changes)
    for file in dict.fromkeys((*files, *changes)):
        edits = files.get(file, [])
        try:
            with open(file, "rb") as stream:
                data = stream.read()
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            found[file] = changed(edited(data.decode(encoding), edits), changes.get(file, ()))
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            name = os.path.basename(file)
            raise UserError(f"--edit: {name}: {error}", type="BadEdit", doing="editing") from error
        except EditError as error:
            raise UserError(
                f"--edit {error}",
                type="BadEdit",
                location=Location(file=file, line=edits[0].line) if edits else None,
                hint="the line numbers are those of the file as it is now",
                doing="editing",
            ) from error
    return found


def read_as(texts: Mapping[str, str], settings: Settings, root: str) -> None:
    """Let these files read like this from now on, and files edited before as on disk. The user's
    modules are imported again if one of them is edited differently now."""
    main = os.path.abspath(settings.file)
    changed = {file for file in {*_texts, *texts} if _texts.get(file) != texts.get(file)}
    if changed - {main}:
        for name, module in list(sys.modules.items()):
            origin = getattr(module, "__file__", None)
            if name != "__main__" and isinstance(origin, str) and is_users_own(origin, root):
                del sys.modules[name]
    _show(_texts, texts)
    _texts.clear()
    _texts.update(texts)
    if _FINDER not in sys.meta_path and any(file != main for file in texts):
        sys.meta_path.insert(0, _FINDER)


@contextmanager
def shown_as(texts: Mapping[str, str]) -> Iterator[None]:
    """Let `linecache` have the files like this for a while: code of an earlier run is compiled
    again, and its comments quote the user's lines."""
    now = dict(_texts)
    _show(now, texts)
    try:
        yield
    finally:
        _show(texts, now)


def _show(before: Mapping[str, str], texts: Mapping[str, str]) -> None:
    for file in before:
        linecache.cache.pop(file, None)
    for file, text in texts.items():
        # without a modification time it is never read from disk again
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


class _Loader(SourceFileLoader):
    """Compiles the edited text; reads and writes no bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(_texts[self.path], self.path, "exec", dont_inherit=True)
        return code


class _Finder:
    """Finds what Python would find, and loads edited files from their edited text."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not spec.has_location:
            return None
        file = os.path.abspath(spec.origin)
        if file not in _texts:
            return None
        return importlib.util.spec_from_file_location(
            name,
            file,
            loader=_Loader(name, file),
            submodule_search_locations=spec.submodule_search_locations,
        )


_FINDER = _Finder()
