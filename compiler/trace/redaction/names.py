"""The user's names, and the neutral ones that stand for them: one for each, everywhere.

A word of Python or torch stays, and so does a single letter. A derived name
(`l_self_norm_1_weight_` of `norm_1`) has the neutral name in it.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import cache
from pathlib import Path, PurePosixPath

from tcw.compiler.trace.records.session import REDACTED

_WORD = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"""(?<![\w\\])(["'])((?:(?!\1)[^\n\\]|\\.)+)\1(?!\w)""")
_PATH = re.compile(r"(?<![\w.)\]/*<])/(?:[\w.@+~-]+/)+[\w.@+~-]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+|\.(?=[,)\]]))?(?:[eE][+-]?\d+)?(?=[fF]?(?!\w))")
_HUMP = re.compile(r"([a-z])([A-Z])")
_LIBRARY = re.compile(r".*/(?:site|dist)-packages/((?:torch|triton|functorch)/.*)")
_STANDARD = re.compile(r".*/lib/python3\.\d+/((?!site-packages|dist-packages).*)")
_FOLDERS = frozenset({"home", "usr", "tmp", "opt", "var", "src", "lib", "root", "mnt", "users"})
"""Parts of paths that say nothing, and are words in sentences too."""
_LONGEST_SIZE = 4
"""Digits of a whole number that is a size and not a constant."""
GONE = "…"


@cache
def public_words() -> frozenset[str]:
    """The names of Python and torch."""
    file = Path(__file__).with_name("public_words.txt")
    return frozenset(file.read_text(encoding="utf-8").split())


class NeutralNames:
    """Neutral names, in the order in which the user's are met."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        """Each of the user's names, in lower case and without outer underscores."""
        self.count = 0
        """How many different names there are."""
        self.files: dict[str, str] = {}
        self.constants: set[float] = set()
        """Numbers with a fraction in the user's source."""
        self.strings = 0
        """How many quoted texts were taken out."""
        self.paths = 0
        self._tokens: dict[str, str] = {}
        self._basenames: dict[str, str] = {}

    def of_source(self, text: str) -> None:
        """Collect what a source file names. A file that does not parse is collected as words."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.collect(text)
            return
        for node in ast.walk(tree):
            for name in ("id", "arg", "attr", "name", "asname", "module", "rest", "kwd_attrs"):
                value = getattr(node, name, None)
                for one in value if isinstance(value, list) else (value,):
                    if isinstance(one, str):
                        self.collect(one)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self.collect(" ".join(node.names))
            if isinstance(node, ast.Constant):
                if isinstance(node.value, float):
                    self.constants.add(node.value)
                elif isinstance(node.value, str) and re.fullmatch(r"[\w.:]+", node.value):
                    self.collect(node.value)

    def collect(self, text: str) -> None:
        """Every name in `text` is the user's, but for those of Python and torch."""
        for word in _WORD.findall(text):
            key = word.strip("_").lower()
            if len(key) > 1 and not _is_public(word) and key not in self.words:
                self.count += 1
                self.words[key] = f"name{self.count}"
                # Dynamo names the nodes of `keyProjection` after `key_projection`
                self.words.setdefault(_HUMP.sub(r"\1_\2", word).strip("_").lower(), self.words[key])

    def file(self, path: str) -> str:
        """The path that stands for `path`. Files of torch and Python keep theirs, from the folder
        of the installation on."""
        if not path or path.startswith("<") or path in self.files.values():
            return path
        library = _LIBRARY.fullmatch(path) or _STANDARD.fullmatch(path)
        if library is not None:
            return f"/{library[1]}"
        if path not in self.files:
            pure = PurePosixPath(path)
            self.files[path] = f"{REDACTED}file{len(self.files) + 1}{pure.suffix}"
            self._basenames.setdefault(pure.name, PurePosixPath(self.files[path]).name)
            for part in (*pure.parts[1:-1], pure.stem):
                if part.lower() not in _FOLDERS:
                    self.collect(part)
        return self.files[path]

    def scrubbed(self, text: str, values: bool = False) -> str:
        """The text with neutral names; without quoted texts that are not names, and without
        constants: with `values` all numbers with a fraction and long ones, else those of the
        source."""
        text = _PATH.sub(self._path, text)
        for name, other in self._basenames.items():
            if name in text:
                text = text.replace(name, other)
        text = _WORD.sub(lambda match: self._token(match[0]), text)
        text = _QUOTED.sub(self._quoted, text)
        if values or self.constants:
            text = _NUMBER.sub(lambda match: self._number(match[0], values), text)
        return text

    def _path(self, found: re.Match[str]) -> str:
        self.paths += 1
        return self.file(found[0])

    def _quoted(self, found: re.Match[str]) -> str:
        quote, text = found[1], found[2]
        if all(_is_public(word) or _is_neutral(word) for word in _WORD.findall(text)) and (
            " " not in text
        ):
            return found[0]
        self.strings += 1
        return f"{quote}{GONE}{quote}"

    def _number(self, text: str, values: bool) -> str:
        if text.isdigit():
            return GONE if values and len(text) > _LONGEST_SIZE else text
        return GONE if values or float(text) in self.constants else text

    def _token(self, token: str) -> str:
        known = self._tokens.get(token)
        if known is None:
            known = self._tokens[token] = self._renamed(token)
        return known

    def _renamed(self, token: str) -> str:
        if _is_public(token):
            return token
        whole = self.words.get(token.strip("_").lower())
        if whole is not None:
            return _like(token, whole)
        parts, made, at = token.split("_"), [], 0
        while at < len(parts):
            for end in range(len(parts), at, -1):
                word = "_".join(parts[at:end])
                other = self.words.get(word.lower()) if word == word.strip("_") else None
                if other is not None:
                    made.append(other)
                    at = end
                    break
            else:
                made.append(parts[at])
                at += 1
        return "_".join(made)


def _is_public(word: str) -> bool:
    return len(word.strip("_")) < 2 or word in public_words() or word.strip("_") in public_words()


_NEUTRAL = re.compile(r"(?:name|file)\d+")


def _is_neutral(word: str) -> bool:
    """Whether all of it is neutral or public: `l_self_modules_name3`."""
    return all(
        _NEUTRAL.fullmatch(part) or part.isdigit() or _is_public(part)
        for part in word.split("_")
        if part
    )


def _like(token: str, other: str) -> str:
    """With the underscores around it."""
    bare = token.strip("_")
    before, _, after = token.partition(bare)
    return f"{before}{other}{after}"
