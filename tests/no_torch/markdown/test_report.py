"""`--markdown`: golden texts, and what a Markdown parser makes of them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import get_args

import pytest
from markdown_it import MarkdownIt

from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.markdown import MARKER
from tcw.viewers.markdown.comment import (
    MOST_CHARACTERS,
    MOST_FOLDED,
    Comment,
    cell_code,
    code,
    escaped,
    fenced,
)
from tcw.viewers.markdown.diff import diff_markdown
from tcw.viewers.markdown.profile import profile_markdown
from tcw.viewers.markdown.report import processes_markdown, report
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import difference
from tcw.viewers.text.processes import Several
from tests.block_trace import block_trace
from tests.conftest import Golden
from tests.long import mostly_long
from tests.no_torch.both_engines import both_engines_trace
from tests.no_torch.hostile import EVIL, How, hostile
from tests.no_torch.profiles import block_profile
from tests.no_torch.two_runs import vetoed_run
from tests.no_torch.two_traces import after, before
from tests.no_torch.viewers.test_processes import process

HOW = pytest.mark.parametrize("how", mostly_long(get_args(How), ("added", "replaced")))
GITHUB = 65_536
"""Characters of a comment."""
NASTY = (
    *EVIL,
    "@octocat fixes #12 and GH-34",
    "![x](http://example.com/a.png) [a](b) <https://example.com> www.example.com",
    "````\n```\n</details></summary>",
    "1. one\n- two\n=====\n# three\n    four\n> five",
    "a\\|b | c `d` ``e``",
    "__init__ *x* _y_ ~~z~~ $E=mc^2$ :tada:",
)
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def rendered(text: str) -> str:
    return PARSER.render(text)


def words(page: str) -> str:
    """The text of a page as GitHub's filters for mentions see it: outside code."""
    page = re.sub(r"<(pre|code)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def tags(page: str) -> set[str]:
    return set(re.findall(r"<(\w+)", page))


ALLOWED = {
    "h3", "p", "br", "ol", "ul", "li", "strong", "code", "pre", "details", "summary", "blockquote",
}  # fmt: skip
TABLE = {"table", "thead", "tbody", "tr", "th", "td"}


def of(records: Sequence[AnyRecord]) -> Recording:
    return Recording(records)


def test_golden_of_the_block(golden: Golden) -> None:
    golden("markdown/block.txt", report(of(block_trace())))


def test_golden_of_both_engines(golden: Golden) -> None:
    golden("markdown/engines.txt", report(of(both_engines_trace()), ("engines", "kernels")))


def test_golden_of_a_diff(golden: Golden) -> None:
    found = difference(of(block_trace()), of(vetoed_run()))
    golden("markdown/diff.txt", diff_markdown(found, "before.tcw", "after.tcw"))


def test_nothing_changed() -> None:
    found = difference(of(block_trace()), of(block_trace()))
    text = diff_markdown(found, "a.tcw", "b.tcw")
    assert "### ✅ tcw diff: nothing changed: a.tcw → b.tcw\n" in text


def test_it_is_rendered_as_meant() -> None:
    page = rendered(report(of(block_trace())))
    assert tags(page) <= ALLOWED
    assert page.count("<details>") == page.count("</details>") == page.count("<summary>") > 3
    assert page.index("<ol>") < page.index("<details>")
    assert '<pre><code class="language-python">' in page
    assert "<summary>environment</summary>" in page


def test_only_the_sections_asked_for() -> None:
    page = rendered(report(of(block_trace()), ("kernels",)))
    assert re.findall("<summary>(.*?)</summary>", page) == ["kernels", "environment"]


@HOW
def test_hostile_text_is_data(how: How) -> None:
    records = hostile(block_trace(), how)
    both = difference(of(block_trace()), of(records))
    for text in (report(of(records)), diff_markdown(both, *NASTY[-2:])):
        assert len(text) <= GITHUB
        page = rendered(text.partition("\n")[2])
        assert tags(page) <= ALLOWED
        assert page.count("<details>") == page.count("</details>")
        for control in "\x1b\x07\x9b\u202e\u2066\x00":
            assert control not in text


@pytest.mark.parametrize("text", NASTY)
def test_a_phrase_renders_as_itself(text: str) -> None:
    page = rendered(f"x {escaped(text)}\n\n{escaped(text)}\n\n- {escaped(text)}\n")
    assert tags(page) <= {"p", "ul", "li"}
    assert page.count("<li>") == 1
    assert not re.search(r"@\w|#\d|GH-\d", words(page))
    shown = words(page.splitlines()[0]).replace("\u200b", "")
    assert shown.strip() == f"x {escaped_source(text)}".strip()


def escaped_source(text: str) -> str:
    """What a phrase is meant to read."""
    from tcw.viewers.kit.cells import cut
    from tcw.viewers.plain import plain_lines

    return cut(" ".join(plain_lines(text)).strip(), 300)


@pytest.mark.parametrize("text", NASTY)
def test_code_renders_as_itself(text: str) -> None:
    page = rendered(f"a {code(text)} b")
    assert tags(page) <= {"p", "code"}
    rows = rendered(f"| a | b |\n|---|---|\n| {cell_code(text)} | last |\n")
    assert "<td>last</td>" in rows
    block = rendered("\n".join(["- x", *("  " + row for row in fenced(text.split("\n"))), "", "y"]))
    assert block.count("<pre>") == 1
    assert block.endswith("<p>y</p>\n")


def test_what_does_not_fit_is_named() -> None:
    comment = Comment(MARKER, "heading")
    for number in range(9):
        comment.fold_text(f"part {number}", ["x" * 99] * 200)
    text = comment.text("See there.")
    assert len(text) <= GITHUB
    assert len(text) >= MOST_CHARACTERS - MOST_FOLDED
    page = rendered(text)
    shown = page.count("<details>")
    assert 4 <= shown < 9
    assert "lines of part 0; " in text
    assert f"part {shown}" in text.splitlines()[-1]
    assert text.endswith("See there.\n")


def test_a_table_keeps_the_rows_for_which_there_is_room() -> None:
    comment = Comment(MARKER, "heading")
    comment.table(("a", "b"), [("x" * 300, "y")] * 500, "rows")
    text = comment.text("")
    assert len(text) < MOST_CHARACTERS
    kept = rendered(text).count("<tr>") - 1
    assert kept > 50
    assert f"{500 - kept} rows" in text


def test_golden_of_a_profile(golden: Golden) -> None:
    golden("markdown/profile.txt", profile_markdown(of(block_profile())))


def test_golden_of_processes(golden: Golden) -> None:
    ranks = [process(before(), 0), process(before(), 1), process(after(), 2)]
    text = processes_markdown(Several(ranks))
    assert text.index("rank 2: `block.py`") < text.index("<details>"), "findings of all first"
    golden("markdown/processes.txt", text)


def test_a_profile_and_processes_are_rendered_as_meant() -> None:
    page = rendered(profile_markdown(of(block_profile())))
    assert tags(page) <= ALLOWED
    assert re.findall("<summary>(.*?)</summary>", page)[0] == "regions"
    assert page.count("<li>") > 3
    page = rendered(processes_markdown(Several([process(before(), 0), process(after(), 1)])))
    assert tags(page) <= ALLOWED | TABLE | {"h4"}
    assert page.count("<tr>") == 3
    assert "<summary>rank 1: kernels</summary>" in page


@HOW
def test_hostile_text_in_a_profile_and_in_processes(how: How) -> None:
    profiled = profile_markdown(of(hostile(block_profile(), how)))  # type: ignore[arg-type]
    evil = process(hostile(before(), how), 0)  # type: ignore[arg-type]
    for text in (profiled, processes_markdown(Several([evil, process(after(), 1)]))):
        assert len(text) <= GITHUB
        page = rendered(text.partition("\n")[2])
        assert tags(page) <= ALLOWED | TABLE | {"h4"}
        assert page.count("<details>") == page.count("</details>")
        for control in "\x1b\x07\x9b\u202e\u2066\x00":
            assert control not in text
