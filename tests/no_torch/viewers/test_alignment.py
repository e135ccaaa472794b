"""Two recordings line up: what only moved or was renamed is no change."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import (
    AnyRecord,
    Graph,
    GraphBreak,
    Node,
    Source,
    Start,
    Text,
)
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.json_diff import diff_report
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.differences.alignment import GONE, Alignment
from tcw.viewers.summary.differences.lines import gaps, matches
from tests.block_trace import block_trace
from tests.no_torch.two_runs import vetoed_run

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


@given(WORDS, WORDS)
def test_matches_rise_and_are_equal(first: list[str], second: list[str]) -> None:
    found = matches(first, second)
    assert all(first[i] == second[j] for i, j in found)
    for column in zip(*found, strict=True):
        assert list(column) == sorted(set(column))
    left = gaps(found, len(first), len(second))
    assert sum(len(one) for one, _ in left) == len(first) - len(found)
    assert sum(len(other) for _, other in left) == len(second) - len(found)
    assert matches(first, first) == [(at, at) for at in range(len(first))]


def test_large_sequences_are_matched_at_their_ends() -> None:
    first = ["start", *("x" for _ in range(10_000)), "end"]
    second = ["start", "y", *("x" for _ in range(10_000)), "y", "end"]
    assert matches(first, second) == [(0, 0), (10_001, 10_003)]


def changed(records: list[AnyRecord], change: Callable[[str, Any], Any]) -> list[AnyRecord]:
    """The records with every struct passed through `change`, by the name of its type."""

    def go(value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            fields = {name: go(getattr(value, name)) for name in value.__struct_fields__}
            return change(type(value).__name__, msgspec.structs.replace(value, **fields))
        if isinstance(value, tuple):
            return tuple(map(go, value))
        if isinstance(value, dict):
            return {key: go(one) for key, one in value.items()}
        return value

    return [go(record) for record in records]


def moved(records: list[AnyRecord], by: int) -> list[AnyRecord]:
    """As if the model had this many more lines of comment above it."""
    start = next(record for record in records if isinstance(record, Start))
    file = start.settings.file
    source = next(
        record for record in records if isinstance(record, Source) and record.file == file
    )
    body = next(
        record.body for record in records if isinstance(record, Text) and record.hash == source.text
    )
    text = "# comment\n" * by + body

    def change(kind: str, one: Any) -> Any:
        if kind == "Location" and one.file == file:
            end = one.end_line + by if one.end_line is not None else None
            return msgspec.structs.replace(one, line=one.line + by, end_line=end)
        if kind == "Source" and one.file == file:
            return msgspec.structs.replace(one, text=text_hash(text))
        return one

    found = changed(records, change)
    return [*found[:1], Text(hash=text_hash(text), body=text), *found[1:]]


def _numbered_otherwise(name: str) -> str:
    match = re.fullmatch(r"(.*?)(?:_(\d+))?", name)
    assert match is not None
    return f"{match[1]}_{int(match[2] or 0) + 7}"


def renamed(records: list[AnyRecord]) -> list[AnyRecord]:
    """As if torch numbered its nodes otherwise: `add_1` is `add_8`."""
    names = {
        node.name: _numbered_otherwise(node.name)
        for record in records
        if isinstance(record, Graph) and record.id != "0/0"
        for node in record.nodes
        if node.op == "call_function"
    }

    def new(words: str) -> str:
        return re.sub(r"\w+", lambda found: names.get(found[0], found[0]), words)

    def change(kind: str, one: Any) -> Any:
        fields = {
            "Node": ("name", "inputs", "origins"),
            "Kernel": ("origins",),
            "SchedulerNode": ("origins",),
            "Lowered": ("node",),
            "Decided": ("id",),
            "FusionPair": ("within",),
        }.get(kind, ())
        renewed = {}
        for field in fields:
            value = getattr(one, field)
            renewed[field] = new(value) if isinstance(value, str) else tuple(map(new, value))
        return msgspec.structs.replace(one, **renewed) if renewed else one

    return changed(records, change)


@pytest.mark.parametrize(
    ("base", "run", "names"),
    [
        ("/tmp/x/pkg/m.py", "/home/repo/pkg/m.py", {"/tmp/x/lib/a.py": "/home/repo/lib/a.py"}),
        ("/code/old.py", "/code/new.py", {"/code/a.py": "/code/a.py"}),
        ("/one/old.py", "/two/new.py", {"/one/a.py": "/two/a.py", "/lib/a.py": "/lib/a.py"}),
        ("/code/m.py", "/code/m.py", {"/code/a.py": "/code/a.py"}),
    ],
)
def test_files_of_another_checkout_are_the_same(base: str, run: str, names: dict[str, str]) -> None:
    def started(file: str, sources: list[str]) -> Recording:
        start = next(one for one in block_trace() if isinstance(one, Start))
        settings = msgspec.structs.replace(start.settings, file=file)
        text = Text(hash=text_hash("x"), body="x")
        found = [Source(file=name, text=text.hash) for name in sources]
        return Recording([msgspec.structs.replace(start, settings=settings), text, *found])

    alignment = Alignment(started(base, [*names]), started(run, [*names.values()]))
    assert alignment.file(base) == run
    assert {name: alignment.file(name) for name in names} == names


def test_a_comment_above_the_model_is_no_change() -> None:
    base, run = Recording(block_trace()), Recording(moved(block_trace(), 5))
    assert base.all(GraphBreak), "there is something that could be new"
    found = difference(base, run)
    assert found.nothing
    assert found.effects == ()
    file = base.all(GraphBreak)[0].location
    at = Alignment(base, run).line(file.file, file.line)
    assert (at.line, at.gone) == (file.line + 5, False)


def test_nodes_with_other_names_are_no_change() -> None:
    base, run = Recording(block_trace()), Recording(renamed(block_trace()))
    assert any(graph.nodes != run.graphs[id].nodes for id, graph in base.graphs.items()), (
        "they have other names"
    )
    found = difference(base, run)
    assert found.decisions.changes == ()
    assert {kernel.kind for kernel in found.kernels} == {"same"}
    assert found.effects == ()


def test_a_veto_is_an_effect() -> None:
    found = difference(Recording(block_trace()), Recording(vetoed_run()))
    assert found.effects
    assert {effect.kind for effect in found.effects} <= {"fusion", "kernel", "memory"}
    assert all("veto" in effect.cause or "apart" in effect.cause for effect in found.effects)


def without_the_break(records: list[AnyRecord], file: str = "") -> list[AnyRecord]:
    """As if the line of the first break were not there, in `file` if that is given."""
    site = next(record for record in records if isinstance(record, GraphBreak)).location
    source = next(
        record for record in records if isinstance(record, Source) and record.file == site.file
    )
    body = next(
        record.body for record in records if isinstance(record, Text) and record.hash == source.text
    )
    lines = body.split("\n")
    text = "\n".join([*lines[: site.line - 1], *lines[site.line :]])

    def change(kind: str, one: Any) -> Any:
        if kind == "Source" and one.file == site.file:
            return msgspec.structs.replace(one, text=text_hash(text), file=file or one.file)
        if kind == "Settings":
            return msgspec.structs.replace(one, file=file or one.file)
        if kind == "Location" and one.file == site.file:
            line = one.line - (one.line > site.line)
            return msgspec.structs.replace(one, file=file or one.file, line=line)
        return one

    without = [record for record in records if not isinstance(record, GraphBreak)]
    run = [*changed(without, change)]
    run.insert(1, Text(hash=text_hash(text), body=text))
    return run


def test_a_break_that_is_gone_quotes_the_line_that_went() -> None:
    records = block_trace()
    site = next(record for record in records if isinstance(record, GraphBreak))
    assert site.location is not None
    first = difference(Recording(records), Recording(without_the_break(records))).effects[0]
    assert (first.kind, first.tone) == ("break", "good")
    assert first.line is not None
    assert first.line.gone
    assert first.cause.endswith(f"is gone: {site.source_line.strip()}")


def test_a_line_that_only_the_base_has_is_in_the_base_s_file() -> None:
    base, run = block_trace(), without_the_break(block_trace(), "/home/ada/other.py")
    old = next(one for one in base if isinstance(one, GraphBreak)).location
    assert old is not None
    found = difference(Recording(base), Recording(run))
    place = f"{Path(old.file).name}:{old.line}"
    assert any(one.what.startswith(f"{place}  ") for one in found.breaks)
    assert f"{place} is gone" in found.effects[0].cause
    assert diff_report(found, "a", "b").effects[0].file == old.file


def _graph(*nodes: Node) -> Recording:
    return Recording([Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes)])


def test_a_name_that_torch_gives_to_another_node_is_not_the_same_node() -> None:
    """torch counts: without the tanh, `add_1` is the next layer's."""

    def node(name: str, target: str) -> Node:
        return Node(name=name, op="call_function", target=target)

    base = _graph(node("add_1", "aten.add"), node("tanh", "aten.tanh"), node("mul", "aten.mul"))
    run = _graph(node("mul", "aten.mul"), node("add_1", "aten.div"))
    alignment = Alignment(base, run)
    assert alignment.nodes("0/0") == {"mul": "mul"}
    assert alignment.node("0/0", "add_1") == f"add_1{GONE}"
    assert alignment.id("tcw/0/0/fuse/add_1+mul") == f"tcw/0/0/fuse/add_1{GONE}+mul"
    assert alignment.node("9/0", "add_1") == "add_1", "nothing is known of that graph"
    assert alignment.node("0/0", "softmax_max") == "softmax_max", "a loop that a lowering made"
