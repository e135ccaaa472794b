from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.viewers.drawing.cells import row
from tcw.viewers.drawing.layers import crossings, layered
from tcw.viewers.drawing.layout import Across, Box, Down, DrawnBlocks, Line, lay_out

Graph = tuple[list[tuple[int, int]], list[tuple[int, int]]]


def text(layout: DrawnBlocks, words: Callable[[int, int], str]) -> str:
    """The whole drawing as text; `words(block, row)` are those of a row of a block, as wide."""
    lines = []
    for y in range(layout.height):
        line, at = "", 0
        for run in row(layout, y, 0, layout.width):
            line += " " * (run.x - at)
            line += words(run.block, run.line) if run.what == "block" else run.words
            at = run.x + run.width
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Sizes of blocks, and edges from lower to higher numbers."""
    sizes = draw(
        st.lists(st.tuples(st.integers(3, 30), st.integers(1, 4)), min_size=1, max_size=24)
    )
    last = len(sizes) - 1
    pairs = st.tuples(st.integers(0, last), st.integers(0, last))
    found = draw(st.lists(pairs, max_size=40)) if last else []
    return sizes, sorted({(min(p), max(p)) for p in found if p[0] != p[1]})


def covers(box: Box, line: Line) -> bool:
    """Whether a line runs through cells of a block."""
    if isinstance(line, Down):
        inside = box.x <= line.x < box.x + box.width
        return inside and line.top < 2 * (box.y + box.height) and 2 * box.y < line.bottom
    inside = box.y <= line.y < box.y + box.height
    return inside and line.left < box.x + box.width and box.x <= line.right


def touch(first: Line, second: Line) -> bool:
    if isinstance(first, Down) and isinstance(second, Down):
        return first.x == second.x and first.bottom == second.top
    if isinstance(second, Across):
        first, second = second, first
    assert isinstance(first, Across)
    assert isinstance(second, Down)
    inside = first.left <= second.x <= first.right
    return inside and 2 * first.y + 1 in (second.top, second.bottom)


@given(graphs())
def test_every_edge_leads_down_and_through_no_block(graph: Graph) -> None:
    sizes, edges = graph
    layout = lay_out(sizes, edges)
    boxes = layout.boxes
    assert [(box.width, box.height) for box in boxes] == sizes
    assert not layout.far
    for at, box in enumerate(boxes):
        assert box.x >= 0
        assert box.x + box.width <= layout.width
        assert box.y + box.height <= layout.height
        for other in boxes[at + 1 :]:
            apart = box.x + box.width < other.x or other.x + other.width < box.x
            assert apart or box.y + box.height <= other.y or other.y + other.height <= box.y
    lines = list(layout.lines())
    assert not [line for line in lines for box in boxes if covers(box, line)]
    for first, second in edges:
        assert layout.layer[first] < layout.layer[second]
        route = layout.route(first, second)
        begin, end = route[0], route[-1]
        above, below = boxes[first], boxes[second]
        assert isinstance(begin, Down)
        assert isinstance(end, Down)
        assert (begin.x, begin.top) == (above.centre, 2 * (above.y + above.height))
        assert end.bottom == 2 * below.y
        assert below.x <= end.x < below.x + below.width
        assert all(touch(a, b) for a, b in pairwise(route))


@given(graphs())
def test_the_same_graph_gives_the_same_picture(graph: Graph) -> None:
    sizes, edges = graph

    def words(block: int, line: int) -> str:
        return "#" * sizes[block][0]

    assert text(lay_out(sizes, edges), words) == text(lay_out(sizes, edges), words)


@given(graphs())
def test_every_node_has_one_place_and_every_link_one_layer(graph: Graph) -> None:
    sizes, edges = graph
    drawn = layered(len(sizes), edges)
    place = {node: at for row in drawn.rows for at, node in enumerate(row)}
    assert len(place) == len(drawn.layer) == sum(map(len, drawn.rows))
    for upper, lowers in enumerate(drawn.below):
        for lower in lowers:
            assert drawn.layer[lower] == drawn.layer[upper] + 1


def test_a_graph_that_the_library_drew_in_two_ways() -> None:
    """fast-sugiyama, which ordered before, gave one order or the other by chance."""
    edges = [(0, 6), (0, 10), (4, 11), (6, 7), (7, 10), (8, 10)]
    rows = {repr(layered(13, edges).rows) for _ in range(30)}
    assert len(rows) == 1


def chains(count: int) -> Graph:
    """A residual around each four blocks."""
    edges = {(n, n + 1) for n in range(count - 1)} | {(n, n + 4) for n in range(0, count - 4, 4)}
    return [(12, 2)] * count, sorted(edges)


def test_few_links_cross() -> None:
    """As few as fast-sugiyama leaves of these."""
    edges = sorted({(a, b) for b in range(1, 60) for a in (b - 1 - b % 3, b - 1 - b % 7) if a >= 0})
    drawn = layered(60, edges)
    assert crossings(drawn.rows, drawn.below) <= 36
    untangled = layered(8, [(0, 7), (1, 6), (2, 5), (3, 4)])
    assert crossings(untangled.rows, untangled.below) == 0


def test_a_long_edge_stays_in_one_column() -> None:
    layout = lay_out([(12, 2)] * 6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)])
    columns = {line.x for line in layout.route(0, 5) if isinstance(line, Down)}
    assert len(columns - {layout.boxes[0].centre, layout.boxes[5].centre}) == 1


def test_edges_that_are_too_long_are_left_out_and_said() -> None:
    count = 900
    edges = sorted({(n, n + 1) for n in range(count - 1)} | {(n, count - 1) for n in range(20)})
    layout = lay_out([(8, 1)] * count, edges)
    assert layout.far
    assert all(second - first > 1 for first, second in layout.far)
    assert layout.route(*layout.far[0]) == []


def test_only_what_is_in_sight_is_looked_at() -> None:
    sizes, edges = chains(2000)
    layout = lay_out(sizes, edges)
    top = layout.height // 2
    seen = {run.block for y in range(top, top + 40) for run in row(layout, y, 0, 80)}
    assert 5 < len(seen) < 40
    tiles = {key for key in layout._tiles if key[0] == top // 16}
    assert sum(len(layout._tiles[key]) for key in tiles) < 200


def test_a_click_finds_its_block() -> None:
    sizes, edges = chains(40)
    layout = lay_out(sizes, edges)
    for number, box in enumerate(layout.boxes):
        assert layout.at(box.x, box.y) == number
        assert layout.at(box.x + box.width - 1, box.y + box.height - 1) == number
        assert layout.at(box.x - 1, box.y) == -1


def shares(layout: DrawnBlocks, edges: Sequence[tuple[int, int]]) -> list[tuple[Down, Down]]:
    """Pieces of edges that have neither a source nor an end in common but run in one column."""
    lines = [(edge, line) for edge in edges for line in layout.route(*edge)]
    down = [(edge, line) for edge, line in lines if isinstance(line, Down)]
    return [
        (a, b)
        for at, (one, a) in enumerate(down)
        for other, b in down[at + 1 :]
        if a.x == b.x
        and a.top < b.bottom
        and b.top < a.bottom
        and one[0] != other[0]
        and one[1] != other[1]
    ]


@settings(max_examples=300)
@given(graphs())
def test_edges_of_different_blocks_never_share_a_column(graph: Graph) -> None:
    """Else a reader could not tell where they lead."""
    sizes, edges = graph
    assert not shares(lay_out(sizes, edges), edges)
