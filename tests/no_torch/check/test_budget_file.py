"""`tcw.budget.toml`: what is written is what is read, whatever the facts are called."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.viewers.summary.budget import LISTED
from tcw.viewers.summary.facts import Fact
from tcw.workbench.check.budget_file import HEAD, Accepted, BadBudget, read, text
from tests.no_torch.hostile import EVIL

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.sampled_from(EVIL)
)
FACTS = st.lists(
    st.one_of(
        st.builds(
            Fact,
            st.just(""),
            st.sampled_from(["graphs", "memory peak", "max error"]),
            st.integers(0, 10**15),
        ),
        st.builds(
            Fact,
            st.sampled_from(sorted(LISTED)),
            TEXTS,
            st.one_of(st.integers(0, 99), st.sampled_from(["dynamic", "yes", "no", "0"])),
        ),
    ),
    max_size=12,
)


@given(TEXTS, FACTS, FACTS)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, first: list[Fact], second: list[Fact]
) -> None:
    accepted = Accepted("2.13")
    accepted.accept("2.13", first)
    accepted.accept("2.14", second)
    file = tmp_path_factory.mktemp("budget") / "tcw.budget.toml"
    file.write_text(text({name: accepted}), encoding="utf-8")
    found = read(file)
    assert list(found) == [name]
    assert found[name].of("2.13") == {one.key: one.value for one in first}
    assert found[name].of("2.14") == {one.key: one.value for one in second}
    assert found[name].of("2.15") == found[name].of("2.13")
    assert [found[name].knows(one) for one in ("2.13", "2.14", "2.15")] == [True, True, False]
    assert text(found) == text({name: accepted})


@pytest.mark.parametrize("evil", EVIL)
def test_a_reviewer_sees_every_character(evil: str) -> None:
    accepted = Accepted("2.13", {("break", evil): 1, ("setting", "x"): evil})
    made = text({evil: accepted})
    assert all(one.isprintable() or one == "\n" for one in made)
    assert evil in tomllib.loads(made) or not evil.isprintable()


def test_it_reads_like_this() -> None:
    accepted = Accepted("2.13")
    accepted.accept(
        "2.13",
        [
            Fact("", "graph breaks", 1),
            Fact("", "memory peak", 8_601_600, "bytes"),
            Fact("", "max error", 4.76837158203125e-07, "error"),
            Fact("break", 'GB0059 in f: print("x")', 1),
        ],
    )
    accepted.accept("2.14", [Fact("", "graph breaks", 0), Fact("", "memory peak", 8_601_600)])
    assert text({"block": accepted}) == (
        HEAD
        + """
[block]
torch = "2.13"
graph-breaks = 1
memory-peak = 8_601_600
max-error = 4.77e-07

[block.break]
'GB0059 in f: print("x")' = 1

[block."torch 2.14"]
graph-breaks = 0
max-error = "-"

[block."torch 2.14".break]
'GB0059 in f: print("x")' = "-"
"""
    )


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("x = [", "tcw.budget.toml"),
        ("block = 1", "block must be a table"),
        ("[block.nonsense]\nx = 1", r"\[block.nonsense\] is not one of"),
        ("[block]\ngraphs = true", "graphs of block must be a number or a text"),
        ('[block]\n"torch 2.14" = 1', "must be a table"),
        ("[block]\nloop-nest = 1", "loop-nest of block is not a fact: did you mean loop-nests"),
    ],
)
def test_a_bad_budget_says_where(written: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "tcw.budget.toml"
    file.write_text(written)
    with pytest.raises(BadBudget, match=words):
        read(file)


def test_no_budget_is_an_empty_one(tmp_path: Path) -> None:
    assert read(tmp_path / "tcw.budget.toml") == {}
