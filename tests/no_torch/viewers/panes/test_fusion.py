from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.inductor.kernel_nests import NestMember, joined_nest
from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    FusionRound,
    Kernel,
    NestLoops,
    Resumed,
    SchedulerNode,
    Text,
)
from tcw.viewers.panes import fusion, pair_loops
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tcw.viewers.summary.fusion import RULES, saved_bytes
from tests.block_trace import block_trace
from tests.inductor_loops import loops_in, nest_text
from tests.no_torch.asking import ID, decided, operations, stopped
from tests.no_torch.two_runs import VETO, two_runs
from tests.no_torch.viewers.panes.conftest import view_of


def texts(rows) -> str:  # type: ignore[no-untyped-def]
    return "\n".join(row.text for row in rows)


def test_each_pair_is_listed_once_and_rejections_by_rule(block: View) -> None:
    content = fusion.decisions(block, 100)
    words = texts(content.rows)
    assert content.right[0][0] == "9 fused · 22 not"
    assert words.count("✓") == 9
    assert "✗ 9 with nodes" in words
    assert "✗ 3 no shared data" in words
    assert "· 5 more" in words
    assert "allowed, but one side had already fused with another node" in words
    block.unfolded |= {f"rule:0/0/forward/lowered:{rule}" for rule in ("between", "")}
    assert "· 5 more" not in texts(fusion.decisions(block, 100).rows)


def test_both_halves_and_what_they_became(block: View) -> None:
    pair = next(p for p in fusion.pairs_of(block) if p.first == "op9_op10_op11" and p.tests == 2)
    block.pair = pair.id
    assert pair_loops.loops(block, 60, "A").subject == "amax, amax, any"
    words = texts(pair_loops.loops(block, 60, "B").rows)
    assert "for p1 in 128:" in words
    assert "buf13[p0] += buf12[p0, p1]" in words
    shared = {
        span[0]
        for row in pair_loops.loops(block, 60, "A").rows
        for span in row.body
        if span[1] == "shared"
    }
    assert shared == {"buf8", "buf9", "buf10", "buf11"}
    assert pair_loops.became(block, 60).subject == "op9–14"


def one_nest() -> list[AnyRecord]:
    """The block's records; its softmax kernel says that it is one nest."""
    records = block_trace()
    made = {record.name: record for record in records if isinstance(record, SchedulerNode)}
    parts = [
        [
            NestMember(
                loops_in(nest_text(made[name].nest)),
                frozenset(made[name].reads),
                frozenset(made[name].writes),
            )
            for name in names.split()
        ]
        for names in ("op9 op10 op11", "op12 op13", "op14")
    ]
    place, kernel = next(
        (place, record)
        for place, record in enumerate(records)
        if isinstance(record, Kernel) and "op14" in record.nodes
    )
    records[place] = structs.replace(
        kernel, nests=(NestLoops(nodes=kernel.nodes, lines=joined_nest(parts, shared=1)),)
    )
    return records


def test_without_a_pair_nothing_became_of_it(block: View) -> None:
    alone = [
        record
        for record in block.recording.records
        if not isinstance(record, (Decided, FusionRound))
    ]
    assert "no pair to show" in texts(pair_loops.became(view_of(alone), 60).rows)


def softmax_became(view: View) -> list[Row]:
    pairs = fusion.pairs_of(view)
    view.pair = next(p.id for p in pairs if p.first == "op9_op10_op11" and p.tests == 2)
    return pair_loops.became(view, 90).rows


def test_what_they_became_has_the_loops_of_the_kernel() -> None:
    rows = softmax_became(view_of(one_nest()))
    heads = [row.text.rstrip() for row in rows if "for " in row.text]
    inner = "        for p1 in 128:"
    assert heads == ["      for p0 in 4096:", inner, inner, inner]
    statements = [row for row in rows if "=" in row.text]
    assert statements[0].text.strip() == "s = buf8[p0, p1]"
    assert statements[-1].text.endswith("buf14[p0, p1] = buf12[p0, p1] / buf13[p0]")
    assert statements[-1].ref.endswith("op14")


def test_a_nest_of_another_group_that_computes_a_node_of_theirs_again_is_not_theirs() -> None:
    records = one_nest()
    alone = texts(softmax_became(view_of(records)))
    kernel = next(record for record in records if isinstance(record, Kernel) and record.nests)
    other = structs.replace(kernel.nests[0], nodes=("op3", kernel.nodes[0]))
    place = next(n for n, record in enumerate(records) if isinstance(record, Kernel))
    records.insert(place, structs.replace(kernel, id="before", nests=(other,)))
    assert texts(softmax_became(view_of(records))) == alone


def test_where_no_nest_is_recorded_they_became_the_loops_of_the_nodes(block: View) -> None:
    assert sum("for p0 in 4096:" in row.text for row in softmax_became(block)) == 3


def test_the_verdict_has_the_rule_and_the_numbers(block: View) -> None:
    rejected = next(p for p in fusion.pairs_of(block) if p.rule == "no-shared-data")
    block.pair = rejected.id
    words = texts(fusion.verdict(block, 100))
    assert "kept apart: no shared data" in words
    assert "no score: only pairs that may fuse get one" in words
    fused = fusion.pairs_of(block)[0]
    block.pair = fused.id
    assert "A and B were fused" in texts(fusion.verdict(block, 100))


@pytest.fixture
def waits() -> View:
    return view_of(stopped())


def glyphs(view: View) -> list[str]:
    rows = fusion.decisions(view, 100).rows
    return [
        row.text.strip()[0] for row in rows if row.key.startswith("pair:") and row.text[1] != " "
    ]


def test_at_a_decision_it_is_the_one_that_is_looked_at(waits: View) -> None:
    content = fusion.decisions(waits, 100)
    assert content.start == f"pair:{ID}"
    assert content.right[0][0] == "3 fused · 18 not · 6 open"
    assert glyphs(waits)[:5] == ["✓", "✓", "✓", "◆", "·"]
    assert pair_loops.loops(waits, 60, "A").subject == "amax, amax, any"
    assert fusion.verdict(waits, 100)[0].text.startswith("Fuse A and B?")


def test_what_would_become_of_both_says_where_it_is_a_sketch(waits: View) -> None:
    content = pair_loops.if_fused(waits, 60)
    assert content.name == "if fused"
    assert "1 loop nest" in content.right[0][0]
    assert content.right[-1][0].strip() == "sketched"
    words = [row.text.rstrip() for row in content.rows]
    assert words[1:] == [
        "      for p0 in 4096:",
        "        for p1 in 128:",
        "  ≈18     buf9[p0] max= buf8[p0, p1]",
        "        for p1 in 128:",
        "   19     buf12[p0, p1] = exp(buf8[p0, p1] - buf9[p0])",
    ]


def test_a_nest_in_other_words_is_shown_as_it_was_printed() -> None:
    body = "for i in 4:\n  x = a[i]\n  while odd:"
    records = [*stopped(nest=(), if_fused="raw", sketched=False), Text(hash="raw", body=body)]
    content = pair_loops.if_fused(view_of(records), 60)
    assert [row.text.strip() for row in content.rows[1:]] == [
        "for i in 4:",
        "x = a[i]",
        "while odd:",
    ]
    assert "sketched" not in content.right[0][0]
    none = pair_loops.if_fused(view_of(stopped(nest=())), 60)
    assert "no loop nest to show" in none.rows[1].text


def test_loops_that_a_trace_has_as_text_are_shown_as_they_are() -> None:
    text = "for p0 in 8:\n  x = load(a, p0)\n"
    records = [
        structs.replace(one, nest=(), loops="old") if isinstance(one, SchedulerNode) else one
        for one in block_trace()
    ]
    view = view_of([*records, Text(hash="old", body=text)])
    view.pair = next(p.id for p in fusion.pairs_of(view) if p.first == "op9_op10_op11")
    shown = [row.text.rstrip() for row in pair_loops.loops(view, 60, "A").rows]
    assert "      for p0 in 8:" in shown
    assert "        x = load(a, p0)" in shown


def test_the_read_that_a_rule_forbids_stands_out() -> None:
    loop = "    for i < 64:\n        mul = add[i] * rsqrt[i]  # mul\n        ✗ cycle: reads rsqrt\n"
    body = f"if_fused: add + mul\n{loop}"
    records = [*stopped(nest=(), if_fused="nest", default="apart"), Text(hash="nest", body=body)]
    content = pair_loops.if_fused(view_of(records), 80)
    (row,) = (row for row in content.rows if "✗" in row.text)
    assert row.body[-1] == ("✗ cycle: reads rsqrt", "bad")


def test_an_answer_closes_the_decision() -> None:
    records = [*stopped(), Resumed(command="step", choice="apart")]
    overruled = decided("apart", overridden=True, rule="yours", reason="you keep them apart")
    view = view_of([*records, overruled])
    assert fusion.waiting_decision(view) is None
    pair = next(pair for pair in fusion.pairs_of(view) if pair.id == ID)
    assert (pair.verdict, pair.rule) == ("rejected", "yours")
    row = next(row for row in fusion.decisions(view, 100).rows if row.key == f"pair:{ID}")
    assert "*" in row.text[:5]
    assert "your choice" in row.text


def test_a_decision_without_a_pair_is_listed_by_its_names() -> None:
    name = "tcw/0/0/forward/fuse/exp+sum_1"
    numbers = {"saved_bytes": 4096.0}
    one = Decided(
        id=name, graph="0/0/forward", kind="fuse", default="fuse", choice="fuse", numbers=numbers
    )
    view = view_of([*operations(stopped()), one])
    pair = next(pair for pair in fusion.pairs_of(view) if pair.id == name)
    assert (pair.first, pair.second, pair.verdict) == ("exp", "sum_1", "fused")
    view.pair = name
    assert pair_loops.loops(view, 60, "A").subject == "exp"
    assert "4 KB" in next(
        r.text for r in fusion.decisions(view, 90).rows if r.key == f"pair:{name}"
    )


def test_pairs_of_a_node_alone(waits: View) -> None:
    waits.pair_filter = "div"
    assert {pair.second for pair in fusion.pairs_of(waits)} == {"op14"}
    assert fusion.decisions(waits, 100).right[0][0].startswith("with div")
    waits.pair_filter = "nowhere"
    assert "no pair involves nowhere" in texts(fusion.decisions(waits, 100).rows)


def test_pairs_are_ranked_by_bytes_or_by_time(block: View) -> None:
    sizes = [saved_bytes(pair) or 0 for pair in fusion.pairs_of(block) if pair.verdict == "fused"]
    assert sizes == sorted(sizes, reverse=True)
    block.order = "time"
    assert [pair for pair in fusion.pairs_of(block) if pair.verdict == "fused"] == [
        pair for pair in block.derived.pairs["0/0/forward/lowered"] if pair.verdict == "fused"
    ]


def test_nothing_is_told_while_the_reader_guesses(waits: View, block: View) -> None:
    for view in (waits, block):
        view.hidden = True
        shown = texts(fusion.decisions(view, 100).rows) + texts(pair_loops.if_fused(view, 60).rows)
        assert not [sign for sign in ("✓", "✗", "for p0") if sign in shown]
        assert fusion.verdict(view, 100) == []


def test_on_a_narrow_screen_b_takes_the_place_of_the_list(waits: View, block: View) -> None:
    assert pair_loops.loops_or_list(waits, 80).name == "B"
    assert pair_loops.loops_or_list(block, 80).name == "fusion"


def test_a_base_run_does_not_say_that_the_pair_just_vetoed_was_fused() -> None:
    whole = Recording(two_runs())
    view = View(Derived(whole.runs[1], Provenance(whole.runs[1].records), whole), compile_id="0/0")
    view.run, view.driven, view.live, view.pair = 1, True, True, VETO
    before = fusion.verdict(view, 120)[0].body[0][0]
    assert before.startswith("A and B")
    assert "✓" in fusion.verdict(view, 120)[1].text
    view.overrides = {VETO: "apart"}
    title, rule, _ = (row.text for row in fusion.verdict(view, 120))
    assert title.startswith(f"Run 1 goes on without your apart, for comparison; in it {before}")
    assert "✓" not in rule
    view.live = False
    title = fusion.verdict(view, 120)[0].text
    assert title.startswith(f"{before}; your apart is for the next run")
    view.derived = Derived(whole.runs[2], Provenance(whole.runs[2].records), whole)
    view.run = 2
    assert "next run" not in fusion.verdict(view, 120)[0].text


def test_names_take_the_room_that_nothing_else_needs(block: View) -> None:
    def cut_names(width: int) -> int:
        rows = (row.text for row in fusion.decisions(block, width).rows)
        return sum("›" in row for row in rows)

    assert cut_names(60) == cut_names(84) == 1
    assert cut_names(80) == cut_names(100) == 0


def test_both_sides_of_a_pair_are_told_where_names_are_cut(
    block: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "_native_batch_norm_legit_no_training"
    pair = block.derived.pairs[fusion.graph_of(block)][0]
    names = {pair.first: name, pair.second: "relu"}
    monkeypatch.setattr(fusion, "label_of", lambda view, graph, node: names.get(node, node))
    rows = fusion.decisions(block, 60).rows
    assert any("_native_ba" in row.text and "› + relu " in row.text for row in rows)


def test_rules_read_with_any_count() -> None:
    """`1 pair rejected: 1 reducing different rows`, never `1 reductions`."""
    plural = [words for words in RULES.values() if words.split()[0] in ("reductions", "stores")]
    assert plural == []
