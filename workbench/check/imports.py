"""The project's files that a model file imports, directly or not.

Found in the text, nothing is run: `import` statements anywhere in a file, looked up beside the file
and from the project's folder (and its `src`). An import by a computed name is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

from tcw.viewers.syntax import statements


def reached_files(file: Path, root: Path, gone: Collection[Path] = ()) -> set[Path]:
    """The file and every file below `root` that it reaches. `gone`: deleted files, which an import
    may still name."""
    found: set[Path] = set()
    left = [file.resolve()]
    main = file.resolve().parent
    while left:
        one = left.pop()
        if one in found or not one.is_relative_to(root):
            continue
        found.add(one)
        left += _imported(one, (main, root, root / "src"), gone)
    return found


def _imported(file: Path, roots: tuple[Path, ...], gone: Collection[Path]) -> Iterator[Path]:
    try:
        tree = statements(file.read_bytes())
    except OSError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from _modules(name.name.split("."), roots, gone)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            folder = file.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            places = (folder,) if node.level else roots
            for name in node.names:
                yield from _modules([*parts, name.name], places, gone)


def _modules(parts: list[str], roots: tuple[Path, ...], gone: Collection[Path]) -> Iterator[Path]:
    """The files of `a.b.c`: each package's, the module's; the last part may be a name in one."""
    for root in roots:
        place = root
        for part in parts:
            place = place / part
            for one in (place / "__init__.py", place.with_suffix(".py")):
                if one.is_file() or one in gone:
                    yield one.resolve()
        if (root / "__init__.py").is_file():
            yield (root / "__init__.py").resolve()
