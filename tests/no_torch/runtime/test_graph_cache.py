"""Compiled graphs by their key: hits, and the explanation of a miss."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tcw.compiler.runtime.artifact import Artifact, Binding, SegmentEntry
from tcw.compiler.runtime.graph_cache import Hit, Miss, keep, key_of, look_up
from tcw.compiler.runtime.store import FileStore

OWN = {"operations": "mm add relu", "tensors": "f32 (8, 8)"}
AROUND = {"torch": "2.13.0", "flags": "-O1 " * 100}

ARTIFACT = Artifact(
    name="0/0/forward",
    unit="int x;",
    flags=("-O1",),
    library="abc",
    segments=(SegmentEntry("segment_0"),),
    wrapper="def call(args): ...",
    bindings=(Binding("aten_mm", "operation", "aten.mm.default"),),
    extra=msgspec.Raw(b'{"decisions":[1,2]}'),
)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


def test_a_hit_answers_the_artifact(store: FileStore) -> None:
    key = key_of(OWN, AROUND)
    assert look_up(key, store) == Miss("first")
    keep(key, ARTIFACT, store)
    found = look_up(key_of(OWN, AROUND), FileStore(store.folder))
    assert found == Hit(ARTIFACT)
    assert isinstance(found, Hit)
    assert msgspec.json.decode(found.artifact.extra) == {"decisions": [1, 2]}


def test_a_miss_says_what_changed(store: FileStore) -> None:
    keep(key_of(OWN, AROUND), ARTIFACT, store)
    key = key_of(OWN, {"torch": "2.14.0", "flags": "-O2", "threads": "one"})
    found = look_up(key, store)
    assert isinstance(found, Miss)
    assert found.reason == "changed"
    assert found.nearest == key_of(OWN, AROUND).digest
    changed = {change.name: (change.before, change.now) for change in found.changed}
    assert changed["torch"] == ("2.13.0", "2.14.0")
    assert changed["threads"] == ("", "one")
    assert changed["flags"][1] == "-O2"
    assert len(changed["flags"][0]) == 12
    assert set(changed) == {"torch", "flags", "threads"}


def test_the_nearest_is_the_graph_most_like_it(store: FileStore) -> None:
    keep(key_of(OWN, {"torch": "2.11.0", "flags": "x"}), ARTIFACT, store)
    near = key_of({**OWN, "tensors": "f32 (9, 9)"}, AROUND)
    keep(near, ARTIFACT, store)
    found = look_up(key_of(OWN, AROUND), store)
    assert isinstance(found, Miss)
    # The same graph on another torch is nearer than another graph on this one.
    assert {change.name for change in found.changed} == {"torch", "flags"}


def test_another_graph_is_not_near(store: FileStore) -> None:
    keep(key_of({"operations": "sort", "tensors": "i64"}, AROUND), ARTIFACT, store)
    assert look_up(key_of(OWN, AROUND), store) == Miss("first")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe"])
def test_a_damaged_entry_is_a_miss(store: FileStore, content: bytes) -> None:
    key = key_of(OWN, AROUND)
    keep(key, ARTIFACT, store)
    store.path("graphs", f"{key.digest}.json").write_bytes(content)
    assert look_up(key, store) == Miss("damaged")
    keep(key, ARTIFACT, store)
    assert isinstance(look_up(key, store), Hit)


def test_a_whole_entry_of_another_format_is_a_miss(store: FileStore) -> None:
    key = key_of(OWN, AROUND)
    store.write_sealed("graphs", f"{key.digest}.json", b'{"name": 3}')
    assert look_up(key, store) == Miss("damaged")


def test_damaged_parts_are_passed_over(store: FileStore) -> None:
    keep(key_of(OWN, AROUND), ARTIFACT, store)
    store.write("keys", "0.json", b"nonsense")
    found = look_up(key_of(OWN, {**AROUND, "torch": "2.14.0"}), store)
    assert isinstance(found, Miss)
    assert found.reason == "changed"


def test_a_miss_that_nobody_reads_is_not_explained(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newest(*_: object) -> list[str]:
        raise AssertionError("the last entries are read")

    monkeypatch.setattr(FileStore, "newest", newest)
    key = key_of({"operations": "add"}, {"flags": "-O1"})
    assert look_up(key, store, explain=False) == Miss("unexplained")
