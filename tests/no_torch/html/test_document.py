"""The exported page: the panes' rows, links that lead somewhere, and nothing else that runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any, get_args

import pytest

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, Graph, Node
from tcw.viewers.html.document import document
from tcw.viewers.html.pool import ROLES
from tcw.viewers.html.tour import MOST_ROWS, Tour
from tcw.viewers.reader import whole
from tcw.viewers.recording import Recording
from tests.block_trace import block_trace, large_trace
from tests.long import mostly_long
from tests.no_torch import traces
from tests.no_torch.hostile import How, hostile


def page(
    records: Sequence[AnyRecord], most_bytes: int = 2_000_000, most_screens: int = 5000
) -> tuple[Tour, str]:
    tour = Tour(whole(Recording(records)), most_bytes, most_screens)
    tour.go()
    return tour, document(tour, "tcw: a.tcw", "the report")


@pytest.fixture(scope="module")
def block_page() -> tuple[Tour, str]:
    """The whole page of a recording, which takes seconds to make. It is only read."""
    return page(block_trace())


class Parsed(HTMLParser):
    """The elements of a page, and the texts of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in self.raw and self.cdata_elem:
            self.raw[self.tags[-1][0]].append(data)


def data_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("".join(Parsed(text).raw["script"][:1]))
    for panel in found["panels"]:
        panel.setdefault("rows", [])
    return found


def places(data: dict[str, Any]) -> Iterator[tuple[int, int, dict[str, int], dict[str, int]]]:
    """Panel, row of the cursor, and the screens to which rows lead."""
    for *_, own in data["screens"]:
        for panel, start, moves, opens in (data["places"][place] for place in own):
            yield panel, start, data["edges"][moves], data["edges"][opens]


def words(data: dict[str, Any], number: int) -> str:
    return "".join(str(one) for part in data["rows"][number][:3] for one in part[1::2])


def check(data: dict[str, Any]) -> None:
    """Every number names something."""
    for number, start, moves, opens in places(data):
        panel = data["panels"][number]
        assert max(panel["rows"], default=0) < len(data["rows"])
        assert start < len(panel["rows"])
        for edges in (moves, opens):
            assert all(int(row) < len(panel["rows"]) for row in edges)
            assert all(0 <= screen < len(data["screens"]) for screen in edges.values())
    assert all(0 <= screen < len(data["screens"]) for screen in data["tabs"].values())


def test_it_has_the_rows_of_the_panes_and_their_links(block_page: tuple[Tour, str]) -> None:
    tour, text = block_page
    data = data_of(text)
    check(data)
    assert tour.left_out == 0
    assert {"overview", "source", "fusion", "memory", "guards"} <= set(data["tabs"])
    recording = tour.reader.recording
    file = recording.files[0]
    panel = next(one for one in data["panels"] if one["pane"] == "source")
    shown = [words(data, number) for number in panel["rows"]]
    for number, line in enumerate(recording.source(file), 1):
        assert line.strip() in shown[number - 1]
    by_number = list(tour.pool.refs.values())
    for ref, lit in tour.lights().items():
        expected = tour.reader.view.derived.provenance.counterparts(by_number[ref])
        assert {by_number[one]: exact for one, exact in lit.items()} == {
            one: how == "exact" for one, how in expected.items() if one in by_number
        }
    lines = [one for one in by_number if one and refs.kind(one) == "src"]
    lights = tour.lights()
    lit = [one for one in lines if lights.get(by_number.index(one))]
    assert lit, "no source line lights anything"


KEYS = {"⏎"}
"""Keys that rows of a page name; the page's own bar names the rest."""


def keys_named(data: dict[str, Any], number: int) -> set[str]:
    parts = data["rows"][number][:3]
    key = ROLES.index("key")
    return {
        str(text).strip()
        for part in parts
        for role, text in zip(part[::2], part[1::2], strict=False)
        if role == key
    } - {""}


def test_rows_name_only_keys_that_the_page_has(block_page: tuple[Tour, str]) -> None:
    data = data_of(block_page[1])
    named = re.compile(r"(?:^|\W)(?:[C-Zb-z]|\( \)) (?:shows|measures|compiles|opens|writes)\b")
    for number in range(len(data["rows"])):
        assert keys_named(data, number) <= KEYS
        text = words(data, number)
        assert not named.search(text), text


def test_a_page_has_all_of_what_torch_says_of_a_break(block_page: tuple[Tour, str]) -> None:
    data = data_of(block_page[1])
    shown = [words(data, number) for number in range(len(data["rows"]))]
    assert any(re.match(r"\s*hint  ", text) for text in shown)


def test_every_fusion_pair_has_a_screen_of_its_own(block_page: tuple[Tour, str]) -> None:
    tour, _ = block_page
    pairs = {id for id in tour.screens if "|at|pair:" in id}
    known = {pair.id for found in tour.reader.view.derived.pairs.values() for pair in found}
    assert known
    assert {id.partition("|at|pair:")[2] for id in pairs} >= known


def test_pictures_have_the_blocks_and_edges_of_the_workbench(
    block_page: tuple[Tour, str],
) -> None:
    tour, text = block_page
    data = data_of(text)
    drawings = [one for one in data["panels"] if "picture" in one]
    assert drawings
    graphs = {graph.id for graph in tour.reader.recording.graphs.values()}
    by_number = list(tour.pool.refs.values())
    for panel in drawings:
        (width, height, boxes, edges), _scale, shows, nodes = panel["picture"]
        assert len(boxes) == len(panel["rows"]) == len(shows)
        assert all(x + across <= width and y + down <= height for x, y, across, down, _ in boxes)
        for first, second, *way in edges:
            assert first < second
            x, y, *moves = way
            (left, top, across, down, _), (to, below, wide, _, _) = boxes[first], boxes[second]
            assert left <= x < left + across
            assert y == 2 * (top + down)
            assert to <= x + sum(moves[1::2]) < to + wide, "the line ends above the block"
            assert y + sum(moves[::2]) == 2 * below
        assert not nodes or len(nodes) == len(boxes)
        for node in nodes:
            assert data["panels"][node]["pane"] == "node"
        for own in shows:
            assert all(refs.kind(by_number[one]) in ("fx", "k") for one in own)
    zoomed = [drawing for drawing in drawings if drawing.get("zooms")]
    assert zoomed
    assert all(0 <= one < len(data["screens"]) for panel in zoomed for one in panel["zooms"])
    assert graphs


def test_modules_open_in_each_other() -> None:
    """A module that is opened inside another leaves that open; of those beside each other one is
    open at a time."""
    placed = [(f"n{at}", f"layers.{at // 700}.mlp") for at in range(2100)]
    nodes = [
        Node(
            name=name, op="call_function", target="aten.relu", inputs=(f"n{at - 1}",), module=module
        )
        for at, (name, module) in enumerate(placed)
    ]
    graph = Graph(id="0/0", kind="captured", compile_id="0/0", nodes=tuple(nodes), ops=2100)
    records = [*traces.opening(), traces.call(), *traces.frame()]
    records = [graph if isinstance(record, Graph) else record for record in records]
    tour, text = page(records, 30_000_000)
    data = data_of(text)
    check(data)
    numbers = {key: number for number, key in enumerate(tour.screens)}

    def blocks(screen: str) -> list[str]:
        *_, own = data["screens"][numbers[screen]]
        panels = [data["panels"][data["places"][place][0]] for place in own]
        panel = next(one for one in panels if "picture" in one)
        return [data["rows"][row][1][1].strip() for row in panel["rows"]]

    def opened(screen: str, title: str) -> str:
        *_, own = data["screens"][numbers[screen]]
        place = next(one for one in own if "picture" in data["panels"][data["places"][one][0]])
        leads = data["edges"][data["places"][place][3]]
        return list(tour.screens)[leads[str(blocks(screen).index(title))]]

    folded = tour.tabs["graph"]
    assert blocks(folded) == ["layers.0.mlp", "layers.1.mlp", "layers.2.mlp"]
    layer = opened(folded, "layers.0.mlp")
    runs = blocks(layer)
    assert (runs[0], runs[-2], runs[-1]) == ("ops 1–5", "layers.1.mlp", "layers.2.mlp")
    run = opened(layer, "ops 1–5")
    assert blocks(run)[:6] == [*(f"relu n{n}" for n in range(5)), "ops 6–10"], (
        "the layer around it was closed"
    )
    assert blocks(opened(run, "ops 6–10"))[0] == "ops 1–5", "the run beside it is still open"
    assert blocks(opened(run, "layers.1.mlp"))[0] == "layers.0.mlp"
    assert blocks(opened(run, "relu n0")) == runs, "an operation closes what it was opened from"


def test_only_its_own_script_and_style_are_allowed() -> None:
    _, text = page(block_trace(), most_screens=50)
    parsed = Parsed(text)
    policy = next(
        one["content"] or "" for tag, one in parsed.tags if tag == "meta" and "http-equiv" in one
    )
    script, style = parsed.raw["script"][-1], "".join(parsed.raw["style"])
    for kind, source in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "http:" not in text
    assert "https:" not in text


@pytest.mark.parametrize("how", mostly_long(get_args(How), ("added", "replaced")))
def test_hostile_text_is_data(how: How) -> None:
    _, text = page(hostile(block_trace(), how), 300_000, 100)
    parsed = Parsed(text)
    assert [tag for tag, _ in parsed.tags if tag == "script"] == ["script", "script"]
    assert not [one for _, given in parsed.tags for one in given if one.startswith("on")]
    data = data_of(text)
    check(data)
    said = [words(data, number) for number in range(len(data["rows"]))]
    assert all(one.isprintable() for one in said)
    assert re.search(r"alert\(1\)", "".join(said)) or how == "long"


def test_a_large_trace_is_cut_and_says_so() -> None:
    tour, text = page(large_trace(20_000), 100_000)
    data = data_of(text)
    check(data)
    assert tour.left_out
    assert f"{tour.left_out} more screens" in data["said"]
    assert all(len(one["rows"]) <= MOST_ROWS for one in data["panels"])


@pytest.mark.parametrize("most", [60_000, 200_000, 400_000])
def test_the_file_is_at_most_as_large_as_asked(most: int) -> None:
    records = [*block_trace(), *large_trace(300)[1:]]
    tour, text = page(records, most)
    assert tour.left_out
    written = len(text.encode()) - len(document(Tour(tour.reader, 0, 0), "", "").encode())
    largest = 30_000  # a screen is begun while there is room
    assert 0.5 * most < written < most + largest


def test_a_part_of_a_trace_is_shown() -> None:
    records = block_trace()
    for count in (1, len(records) // 3, len(records) - 1):
        _, text = page(records[:count], most_screens=60)
        check(data_of(text))
