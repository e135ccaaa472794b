"""How large the product is: lines of code, of documentation and of both by folder.

    python benchmarks/code_size.py            # the table; exit 1 where a folder outgrew its budget
    python benchmarks/code_size.py --accept   # write the figures as the new budget

The budget is `tcw.size.toml`. A docstring, a string that documents a name, and a comment are
documentation; blank lines count in the last column alone. The code of a folder and the lines of the
whole product have a budget each: documentation may move between folders, but not grow for ever.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "tcw.size.toml"
PRODUCT = ("tcw", "compiler", "viewers", "workbench")
LANGUAGES = (".py", ".cpp", ".h", ".js", ".css", ".tcss")
RAISE = (
    "raise it in this commit and say why in the message: python benchmarks/code_size.py --accept"
)

_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True)
class Size:
    """Lines of a file or a folder."""

    code: int = 0
    documentation: int = 0
    all: int = 0
    """Blank ones too."""

    def __add__(self, other: Size) -> Size:
        return Size(
            self.code + other.code,
            self.documentation + other.documentation,
            self.all + other.all,
        )


def sources(root: Path = ROOT) -> Iterator[Path]:
    """The product's files, relative to `root`: those that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *PRODUCT],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in sorted(set(filter(None, listed.split("\0")))):
        if name.endswith(LANGUAGES) and (root / name).is_file():
            yield Path(name)


def folder_of(path: Path) -> str:
    """`compiler/capture` for all files below it, `compiler` for one that stands at its top."""
    return "/".join(path.parts[:2] if len(path.parts) > 2 else path.parts[:1])


def size_of(name: str, text: str) -> Size:
    """The size of one file."""
    lines = text.splitlines()
    filled = {number for number, line in enumerate(lines, 1) if line.strip()}
    documentation = _documentation(text) if name.endswith(".py") else _comments(lines)
    code = len(filled - documentation)
    return Size(code, len(filled & documentation), len(lines))


def _documentation(text: str) -> set[int]:
    """The lines of a Python file that hold nothing but a comment or a string that is no value."""
    documented: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
            documented.add(token.start[0])
        elif token.type == tokenize.NEWLINE:
            if [part.type for part in statement] == [tokenize.STRING]:
                documented.update(range(statement[0].start[0], statement[0].end[0] + 1))
            statement.clear()
        elif token.type not in _LAYOUT:
            statement.append(token)
    return documented


def _comments(lines: list[str]) -> set[int]:
    """The lines of C++, JavaScript and style sheets that hold nothing but a comment."""
    commented: set[int] = set()
    inside = False
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if inside or stripped.startswith(("//", "/*")):
            commented.add(number)
        if stripped.startswith("/*") or inside:
            inside = "*/" not in stripped
    return commented


def measured(root: Path = ROOT) -> dict[str, Size]:
    """The size of each folder, largest first."""
    sizes: defaultdict[str, Size] = defaultdict(Size)
    for path in sources(root):
        sizes[folder_of(path)] += size_of(path.name, (root / path).read_text(encoding="utf-8"))
    return dict(sorted(sizes.items(), key=lambda item: -item[1].all))


def total(sizes: Mapping[str, Size]) -> Size:
    """The size of the product."""
    return sum(sizes.values(), Size())


def outgrown(sizes: Mapping[str, Size], budget: Mapping[str, int]) -> list[str]:
    """Where the product is past its budget, in words."""
    grown = [
        f"{folder}: {size.code:,} lines of code, {size.code - budget.get(folder, 0):,} more than "
        "accepted"
        for folder, size in sizes.items()
        if size.code > budget.get(folder, 0)
    ]
    if (lines := total(sizes).all) > budget["product"]:
        grown.append(f"product: {lines:,} lines, {lines - budget['product']:,} more than accepted")
    return [f"{words}; {RAISE}" for words in grown]


def read_budget(file: Path = BUDGET) -> dict[str, int]:
    """Lines of code by folder, and of all lines under `product`."""
    budget: dict[str, int] = tomllib.loads(file.read_text(encoding="utf-8"))["lines"]
    return budget


def budget_text(sizes: Mapping[str, Size]) -> str:
    """The budget file that accepts these sizes."""
    rows = [f'"{folder}" = {size.code:_}' for folder, size in sorted(sizes.items())]
    return "\n".join(
        (
            "# The most lines of code of each folder, and of all lines of the product.",
            "# Written by `python benchmarks/code_size.py --accept`; a figure that rises is a line",
            "# in the commit message that says why.",
            "[lines]",
            f"product = {total(sizes).all:_}",
            *rows,
            "",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--accept", action="store_true", help="write the figures as the budget")
    accept: bool = parser.parse_args().accept
    sizes = measured()
    print(f"{'folder':26}{'code':>9}{'documentation':>15}{'all lines':>11}")
    for folder, size in (*sizes.items(), ("product", total(sizes))):
        print(f"{folder:26}{size.code:9,}{size.documentation:15,}{size.all:11,}")
    if accept:
        BUDGET.write_text(budget_text(sizes), encoding="utf-8")
        return 0
    grown = outgrown(sizes, read_budget())
    print(*grown, sep="\n")
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
