"""Views of a profile, and what their panes show."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.panes.rows import Content
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording


def view_of(records: list[AnyRecord], **state: object) -> View:
    recording = Recording(records)
    view = View(Derived(recording, Provenance(records)), compile_id="0/0")
    return replace(view, **state)  # type: ignore[arg-type]


def texts(content: Content) -> list[str]:
    return [row.text.rstrip() for row in content.rows]


def keys(content: Content) -> list[str]:
    return [row.key for row in content.rows if row.key]


def of_label(view: View, label: str) -> str:
    assert view.derived.profile is not None
    return next(row.key for row in view.derived.profile.rows if row.label == label)
