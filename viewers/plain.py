"""The only place where a user's text is made safe for a terminal.

Names, messages, reprs and source lines are data: anything that could control a terminal, reorder
text or hide in it becomes visible. Each character is handled separately, so that
`plain(a) + plain(b) == plain(a + b)` and columns map through `plain(text[:column])`.
"""

from __future__ import annotations

from functools import lru_cache

TAB = "    "

_FILLERS = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)
_SELECTORS = (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
_INVISIBLE = frozenset((*_FILLERS, *_SELECTORS))
"""Characters that Unicode calls printable but no terminal shows: fillers, variation selectors, the
blank Braille pattern."""

_SPACES = frozenset([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000])
"""Spaces of other widths: replaced by a plain space."""


def plain(text: str) -> str:
    """`text` as one line that only prints.

    A tab becomes four spaces; other C0 controls and DEL become their pictures (`␛`, `␊`, `␡`);
    C1 controls, bidirectional overrides, zero-width and invisible characters, private-use and
    unassigned code points and lone surrogates become `<U+202E>`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def plain_lines(text: str) -> list[str]:
    """The same for a text of several lines: split at `\\n` and `\\r\\n`, each line plain."""
    return [plain(line.removesuffix("\r")) for line in text.split("\n")]


def plain_column(text: str, column: int) -> int:
    """Where character `column` of `text` is in `plain(text)`."""
    return len(plain(text[:column]))


@lru_cache(maxsize=4096)
def _visible(character: str) -> str:
    code = ord(character)
    if character == "\t":
        return TAB
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code in _SPACES:
        return " "
    if character.isprintable() and code not in _INVISIBLE:
        return character
    return f"<U+{code:04X}>"


def spelled(words: str) -> str:
    """The key `⏎` as a word, for terminals without the glyph."""
    return words.replace("⏎", "Enter")


GLYPHS = {
    "✗": "x", "✓": "v", "↻": "~", "↺": "<", "→": ">", "←": "<", "↑": "^", "↓": "v",
    "×": "x", "±": "~", "µ": "u", "Δ": "d", "…": ".", "›": ">", "‹": "<", "·": "-",
    "–": "-", "−": "-",
    "≈": "~", "≤": "<", "≥": ">", "⏎": "<", "“": '"', "”": '"', "‘": "'", "’": "'",
    "●": "*", "○": "o", "◌": "o", "◆": "*", "■": "#", "▼": "v", "▾": "v", "▸": ">",
    **dict.fromkeys("█▉▇▆▅▊▋", "#"), **dict.fromkeys("▄▃", "="), **dict.fromkeys("▂▁", "_"),
    "▔": "^", **dict.fromkeys("▌▍▎▏▐│┃", "|"), **dict.fromkeys("─┄", "-"), "━": "=",
    **dict.fromkeys("╭╮╰╯├┤┬┴┼└┘┌┐", "+"),
}  # fmt: skip
"""Glyphs of the interface and their ASCII replacements, one cell each."""

_WORDS = {"✓": "ok", "→": "->", "±": "+-", "…": "...", "≤": "<=", "≥": ">="}
"""The same without a limit on cells."""


def fit_encoding(text: str, encoding: str) -> str:
    """`text` with everything that `encoding` cannot represent replaced: interface glyphs by ASCII,
    control pictures by caret notation (`^[`), anything else by `\\u4e2d`."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_fitting(character, encoding) for character in text)
    except LookupError:
        return fit_encoding(text, "ascii")
    return text


def can_encode(character: str, encoding: str) -> bool:
    """Whether `encoding` has this character."""
    try:
        character.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _fitting(character: str, encoding: str) -> str:
    if can_encode(character, encoding):
        return character
    code = ord(character)
    if 0x2400 <= code < 0x2420:
        return "^" + chr(code - 0x2400 + 0x40)
    if character == "␡":
        return "^?"
    instead = _WORDS.get(character) or GLYPHS.get(character)
    return instead or character.encode("ascii", "backslashreplace").decode()
