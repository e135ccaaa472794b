"""The guards pane: whose line it is that stands beside a guard."""

from __future__ import annotations

from msgspec.structs import replace

from tcw.compiler.trace.records import AnyRecord, Guard, Guards, Location
from tcw.viewers.panes import guard_list
from tests.no_torch import traces
from tests.no_torch.viewers.panes.conftest import view_of

LIBRARY = "/usr/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py"


def guard(name: str, file: str, line: int) -> Guard:
    return Guard(
        kind="CONSTANT_MATCH", name=name, source=f"L['{name}']", value="3",
        location=Location(file=file, line=line),
    )  # fmt: skip


def clean(*found: Guard) -> list[AnyRecord]:
    return [
        replace(one, guards=found) if isinstance(one, Guards) else one for one in traces.clean()
    ]


def test_a_line_that_is_not_of_the_users_file_has_its_file_beside_it() -> None:
    records = clean(guard("x", traces.FILE, 6), guard("y", LIBRARY, 56))
    rows = {
        row.text.split()[0]: row.text.split()
        for row in guard_list.content(view_of(records), 60).rows
    }
    assert rows["x"] == ["x", "3", ":6"]
    assert rows["y"] == ["y", "3", "modeling_llama.py:56"]


def test_the_single_guards_of_a_kind_have_their_file_too() -> None:
    place = Location(file=LIBRARY, line=56)
    weights = (Guard(kind="NEWER_MATCH", name="self", source="L['self']", location=place),)
    view = view_of(clean(*weights))
    view.unfolded.add(guard_list.content(view, 60).rows[0].key)
    opened = guard_list.content(view, 60).rows[1].text.split()
    assert (opened[0], opened[-1]) == ("self", "modeling_llama.py:56")
