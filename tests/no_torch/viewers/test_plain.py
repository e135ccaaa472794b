"""No text of a user's steers a terminal, hides in it, or changes the columns around it."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tcw.viewers.plain import TAB, fit_encoding, plain, plain_column, plain_lines

ANY = st.text(max_size=60)
NASTY = st.text(st.sampled_from("\x00\x07\x1b\x7f\x85\x9b\u200b\u202e\u2066\ufeff\ud800\tabc"))


@given(ANY | NASTY)
def test_only_printable_characters_come_out(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert not {unicodedata.category(one) for one in shown} & {"Cc", "Cf", "Cs", "Co", "Cn"}


@given(ANY | NASTY)
def test_twice_is_once(text: str) -> None:
    assert plain(plain(text)) == plain(text)


@given(NASTY, NASTY)
def test_each_character_by_itself(one: str, two: str) -> None:
    """So columns can be carried over."""
    assert plain(one + two) == plain(one) + plain(two)
    assert plain_column(one + two, len(one)) == len(plain(one))


@given(ANY)
def test_nothing_disappears(text: str) -> None:
    assert len(plain(text)) >= len(text)


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"])))
def test_ordinary_text_stays(text: str) -> None:
    assert plain(text) == text


@given(ANY | NASTY, st.sampled_from(["ascii", "latin-1", "cp1252", "utf-8", "koi8-r", "no-such"]))
def test_every_encoding_can_be_written(text: str, encoding: str) -> None:
    fit = fit_encoding(plain(text), encoding)
    fit.encode("ascii" if encoding == "no-such" else encoding)
    assert fit.isprintable()


def test_pictures() -> None:
    assert plain("\x1b[31m") == "␛[31m"
    assert plain("a\nb\x7f") == "a␊b␡"
    assert plain("\u202e\u200b\x9b\ud800") == "<U+202E><U+200B><U+009B><U+D800>"
    assert plain("\t[bold]") == TAB + "[bold]"
    assert plain("a\u00a0b") == "a b"
    assert fit_encoding("␛ ✗ → 中", "ascii") == "^[ x -> \\u4e2d"


def test_lines() -> None:
    assert plain_lines("a\r\nb\rc\n") == ["a", "b␍c", ""]
