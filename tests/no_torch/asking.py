"""A recording that was stopped at a decision on `amax, amax, any` and `exp, sum`."""

from __future__ import annotations

from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    Forbidden,
    Location,
    SchedulerNode,
    Waiting,
)
from tests.block_trace import block_trace
from tests.decided import asked as asked_decision
from tests.decided import is_test
from tests.inductor_loops import nest_in

ID = "inductor/0/0/forward/fuse/amax_default+sum_1"
GRAPH = "0/0/forward/lowered"
NEST = """\
for p0 in 4096:
  reduce p1 in 128:
    load = load(buf8, 128*p0 + p1)
    max_1 = reduction(float32, float32, max, load)
    store_reduction(buf9, p0, max_1)
  for p1 in 128:
    load_1 = load(buf8, 128*p0 + p1)
    load_2 = load(buf9, p0)
    sub = sub(load_1, load_2)
    exp = exp(sub)
    store(buf12, 128*p0 + p1, exp)
"""
SIDES = ("op9", "op10", "op11"), ("op12", "op13")


def asked(**more: object) -> Decided:
    fields: dict[str, object] = {
        "id": ID,
        "graph": GRAPH,
        "kind": "fuse",
        "default": "fuse",
        "choices": ("fuse", "apart"),
        "rule": "may-fuse",
        "reason": "B reads what A writes",
        "numbers": {"shared_bytes": 2134016.0, "distance": -4.0},
        "forbidden": (),
        "first": SIDES[0],
        "second": SIDES[1],
        "origins": ("amax", "exp"),
        "nest": nest_in(NEST),
        "sketched": True,
        "means": "two loop nests, which may share one C++ function",
        "location": Location(file="/home/ada/models/block.py", line=19),
        **more,
    }
    return asked_decision(**fields)  # type: ignore[arg-type]


def before_the_pair() -> list[AnyRecord]:
    """The block's records up to where the pair was first tested for good."""
    records = block_trace()
    at = next(
        index
        for index, record in enumerate(records)
        if is_test(record)
        and record.sides == tuple("_".join(side) for side in SIDES)
        and record.pair.phase == "commit"
    )
    return records[:at]


def stopped(**more: object) -> list[AnyRecord]:
    """The compile waits for an answer."""
    return [
        *before_the_pair(),
        asked(**more),
        Waiting(number=4, kind="decision", why="step", stage="fusion", decision=ID),
    ]


def decided(choice: str = "fuse", **more: object) -> Decided:
    return Decided(id=ID, graph=GRAPH, kind="fuse", default="fuse", choice=choice, **more)  # type: ignore[arg-type]


def forbidden() -> Forbidden:
    return Forbidden(choice="fuse", rule="cycle", reason="the graph would be cyclic")


def operations(records: list[AnyRecord]) -> list[SchedulerNode]:
    return [record for record in records if isinstance(record, SchedulerNode)]
