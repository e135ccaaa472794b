from __future__ import annotations

from viewers.panes import fusion
from viewers.panes.view import View


def texts(rows) -> str:  # type: ignore[no-untyped-def]
    return "\n".join(row.text for row in rows)


def test_each_pair_is_listed_once_and_rejections_by_rule(block: View) -> None:
    content = fusion.decisions(block, 100)
    words = texts(content.rows)
    assert content.right[0][0] == "9 fused · 22 not"
    assert words.count("✓") == 9
    assert "✗ 9 something" in words
    assert "✗ 3 no shared data" in words
    assert "· 5 more" in words
    block.unfolded.add("rule:0/0/forward/lowered:between")
    assert "· 5 more" not in texts(fusion.decisions(block, 100).rows)


def test_both_halves_and_what_they_became(block: View) -> None:
    pair = next(p for p in fusion.pairs_of(block) if p.first == "op9_op10_op11" and p.tests == 2)
    block.pair = pair.id
    assert fusion.loops(block, 60, "A").subject == "amax, amax, any"
    words = texts(fusion.loops(block, 60, "B").rows)
    assert "for p1 in 128:" in words
    assert "buf13[p0] += buf12[p0, p1]" in words
    shared = {
        span[0]
        for row in fusion.loops(block, 60, "A").rows
        for span in row.body
        if span[1] == "shared"
    }
    assert shared == {"buf8", "buf9", "buf10", "buf11"}
    assert fusion.became(block, 60).subject == "op9–14"


def test_the_verdict_has_the_rule_and_the_numbers(block: View) -> None:
    rejected = next(p for p in fusion.pairs_of(block) if p.rule == "no-shared-data")
    block.pair = rejected.id
    words = texts(fusion.verdict(block, 100))
    assert "kept apart: no shared data" in words
    assert "not scored" in words
    fused = fusion.pairs_of(block)[0]
    block.pair = fused.id
    assert "A and B were fused" in texts(fusion.verdict(block, 100))
