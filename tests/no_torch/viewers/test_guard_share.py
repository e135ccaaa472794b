"""What a short call spends outside its graphs and on its guards."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, Guard, Guards
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.guard_share import guard_share, warm_guards_us
from tests.no_torch import traces


def short(eager_ms: float, outside: float, whole: float, what: str = "forward") -> AnyRecord:
    """A call of 0.1 ms."""
    speed = traces.speed(eager_ms, 0.1)
    return structs.replace(speed, outside_ms=outside, alone_ms=whole, what=what)


def guards(count: int, us: float, compile_id: str = "0/0", source: str = "L['self']") -> Guards:
    return Guards(
        compile_id=compile_id,
        warm_us=us,
        guards=tuple(
            Guard(
                kind="CONSTANT_MATCH", name=f"self.scales[{n}]", source=f"{source}.scales[{n}]",
                location=traces.at(9),
            )
            for n in range(count)
        ),
    )  # fmt: skip


def found(*records: AnyRecord) -> dict[str, Finding]:
    every = [*traces.clean()[:-3], *records, traces.end()]
    return {one.kind: one for one in summarise(Recording(every)).findings}


def test_what_surrounds_the_graphs_is_named_where_it_is_the_cause() -> None:
    slower = found(short(0.06, outside=0.04, whole=0.05))["slower"]
    assert "80% of its 100 µs" in slower.title
    assert [fix.code == "" for fix in slower.fixes] == [True, False]


def test_no_limit_of_microseconds_decides() -> None:
    """The graphs alone take longer than eager, however short the call is."""
    slower = found(short(0.01, outside=0.04, whole=0.05))["slower"]
    assert slower.title.endswith("the cause was not found")
    unknown = found(traces.speed(0.04, 0.1))["slower"]
    assert unknown.title.endswith("the cause was not found")


def test_in_training_eager_surrounds_its_operations_too() -> None:
    assert "autograd" in found(short(0.06, 0.04, 0.05, "forward + backward"))["slower"].title
    title = found(short(0.03, 0.04, 0.05, "forward + backward"))["slower"].title
    assert title.endswith("the cause was not found")


def test_guards_that_take_a_good_part_of_a_call_are_a_finding() -> None:
    costly = found(short(0.2, 0.08, 0.1), guards(500, 40.0))["guards"]
    assert costly.cost == "40.0 µs"
    assert costly.title == "500 guards take 40.0 µs, 40% of each call"
    assert costly.notes == ("500 on self.scales[…]",)
    assert costly.place is not None
    assert costly.place.line == 9
    assert "skip_guard_on_all_nn_modules_unsafe" in costly.fixes[-1].text
    assert costly.fixes[-1].text.startswith("Unsafe")
    assert costly.code == "", "nobody pastes it by mistake"


def test_guards_of_a_small_share_are_none() -> None:
    assert "guards" not in found(short(0.2, 0.08, 0.1), guards(500, 19.0))
    long = structs.replace(short(0.2, 0.8, 1.0), compiled_ms=1.0)
    assert "guards" not in found(long, guards(500, 40.0))
    assert guard_share(Recording([*traces.opening(), guards(500, 40.0)])) is None


def test_of_several_entries_of_a_frame_the_shortest_counts() -> None:
    both = [guards(5, 40.0), guards(5, 30.0, "0/1"), guards(5, 7.0, "1/0")]
    assert warm_guards_us(Recording(both)) == 37.0
