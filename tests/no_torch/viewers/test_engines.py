"""A recording of both engines: split in two, each read by the same viewers, and lined up."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tcw.compiler.trace.records import (
    Decided,
    End,
    EnginePart,
    EngineSpeed,
    Kernel,
    Progress,
    Speed,
    Start,
)
from tcw.viewers.json_report import report
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.engine_comparison import compare
from tcw.viewers.summary.facts import numbers
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tests.block_trace import block_trace
from tests.conftest import Golden
from tests.no_torch.both_engines import both_engines_trace

GOLDENS = Path(__file__).parents[2] / "goldens" / "explain"


@pytest.fixture(scope="module")
def both() -> Recording:
    return Recording(both_engines_trace())


def test_each_part_reads_as_if_it_had_been_recorded_alone(both: Recording) -> None:
    alone, part = Recording(block_trace()), both.engines["inductor"]
    assert list(both.engines) == ["inductor", "tcw"]
    for kind in (Kernel, Decided, Speed, End):
        assert part.all(kind) == alone.all(kind)
    assert to_text(explain(part), 100) == to_text(explain(alone), 100)


def test_settings_name_the_engine_of_the_part(both: Recording) -> None:
    engines = {e: part.start.settings.engine for e, part in both.engines.items() if part.start}
    assert engines == {"inductor": "inductor", "tcw": "tcw"}
    assert both.start is not None
    assert both.start.settings.engine == "both"


def test_sources_texts_and_the_end_belong_to_both(both: Recording) -> None:
    for part in both.engines.values():
        assert part.files == both.files
        assert part.end == both.end
        assert all(part.text(kernel.text) for kernel in part.kernels.values() if kernel.text)


def test_a_trace_that_grows_is_split_as_one_that_is_read_whole(both: Recording) -> None:
    grown = Recording()
    for record in both_engines_trace():
        grown.feed([record])
    for engine, part in both.engines.items():
        assert [r for r in grown.engines[engine].records if not isinstance(r, Start)] == [
            r for r in part.records if not isinstance(r, Start)
        ]


def test_a_part_that_has_only_begun_is_shown_alone() -> None:
    records = both_engines_trace()
    second = [i for i, r in enumerate(records) if isinstance(r, EnginePart)][1]
    cut = Recording([*records[:second], Progress(stage="capture", activity="call 1 of 4")])
    assert compare(cut) is None
    assert "inductor" in to_text(explain(cut), 100).splitlines()[0]


def test_figures(both: Recording) -> None:
    found = compare(both)
    assert found is not None
    assert [column.engine for column in found.columns] == ["inductor", "tcw"]
    assert found.second.functions + found.second.calls < found.first.functions + found.first.calls
    for one in found.kernels:
        lines = [set(one.lines) >= set(places(kernel)) for kernel in (*one.first, *one.second)]
        assert all(lines)
    kernels = [kernel.id for one in found.kernels for kernel in one.first]
    assert sorted(kernels) == sorted(
        k.id for k in found.first.recording.kernels.values() if not k.predicted
    )


def test_the_peak_is_unknown_if_a_graph_runs_on_aten() -> None:
    call = Kernel(id="k99", name="aten.sin", label="sin", graph="3/0/forward", language="aten")
    found = compare(Recording([*both_engines_trace(), call]))
    assert found is not None
    assert found.second.peak_bytes is None
    assert found.first.peak_bytes is not None
    alone = Recording([*block_trace(), call])
    assert {number.name: number.value for number in numbers(alone, summarise(alone))}[
        "memory peak"
    ] is None


def places(kernel: Kernel) -> list[tuple[str, int]]:
    return [(place.file, place.line) for place in kernel.locations]


@pytest.mark.parametrize("show", ["", "engines", "decisions"])
def test_text(both: Recording, golden: Golden, show: str) -> None:
    shown = (show,) if show else ()
    name = f"both-{show}" if show else "both"
    golden(GOLDENS / f"{name}.txt", to_text(explain(both, 110, 40, shown), 110))


def test_an_error_is_not_cut_where_there_is_no_room_for_all(both: Recording) -> None:
    lines = to_text(explain(both, 80, 40, ()), 80).splitlines()
    (header,) = (line for line in lines if line.startswith("engine "))
    assert "calls" not in header
    rows = [line for line in lines if line.startswith(("inductor  ", "tcw  "))]
    assert [line.rstrip()[-17:] for line in rows] == ["max error 4.8e-07"] * 2


def test_what_ended_the_recording_of_both_is_said_once_in_full() -> None:
    records = [r for r in both_engines_trace() if not isinstance(r, Speed | EngineSpeed | End)]
    cut = Recording([*records, End(status="interrupted", seconds=283, reason="timing")])
    lines = to_text(explain(cut), 100).splitlines()
    words = "Speed of the two engines not measured: interrupted after 4 min 43 s (timing)"
    assert words in lines
    assert sum("interrupted" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("noise", "shown"), [(0.1, "≈ same (0.70x)"), (1.9, "not measured"), (0.0, "0.70x  ")]
)
def test_against_eager_no_ratio_is_shown_that_means_nothing(
    both: Recording, noise: float, shown: str
) -> None:
    records = [
        replace(record, speedup=0.7, noise=noise, in_noise=noise > 0)
        if isinstance(record, Speed)
        else record
        for record in both.records
    ]
    lines = to_text(explain(Recording(records), 110, 40, ()), 110).splitlines()
    rows = [line for line in lines if line.startswith(("inductor  ", "tcw  "))]
    assert len(rows) == 2
    assert all(shown in row for row in rows)


def test_sections_of_one_engine_are_shown_for_each(both: Recording) -> None:
    text = to_text(explain(both, 100, 40, ("kernels", "breaks")), 100)
    assert text.count("\ninductor\n") == text.count("\ntcw\n") == 1
    assert text.count("\nbreaks") == 1


def test_json_has_each_engine(both: Recording) -> None:
    found = report(both)
    assert found.comparison is not None
    assert (found.comparison.first, found.comparison.second) == ("inductor", "tcw")
    assert found.comparison.speedup == 2.0
    assert [engine.engine for engine in found.engines] == ["inductor", "tcw"]
    assert {kernel.engine for kernel in found.kernels} == {"inductor", "tcw"}
    assert report(Recording(block_trace())).comparison is None
