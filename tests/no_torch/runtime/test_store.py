"""Files shared by many processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tcw.compiler.cache_folder import CacheRefused
from tcw.compiler.runtime.store import (
    IN_USE_SECONDS,
    MOST_BYTES,
    FileStore,
    digest,
    open_store,
    usable_store,
)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path, capacity=1000)


def age(store: FileStore, kind: str, name: str, seconds: int) -> None:
    path = store.path(kind, name)
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_what_was_written_is_read(store: FileStore) -> None:
    store.write("things", "a", b"content")
    assert store.read("things", "a") == b"content"
    assert store.read("things", "b") is None
    assert store.read("other", "a") is None


def test_a_seal_is_checked(store: FileStore) -> None:
    store.write_sealed("things", "a", b"line\nline")
    assert store.read_sealed("things", "a") == b"line\nline"


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "garbage"])
def test_a_damaged_file_is_removed(store: FileStore, damage: str) -> None:
    path = store.write_sealed("things", "a", b"0123456789")
    content = path.read_bytes()
    path.write_bytes(
        {
            "truncated": content[:-1],
            "changed": content[:-1] + b"x",
            "empty": b"",
            "garbage": b"\xff" * 300,
        }[damage]
    )
    assert store.read_sealed("things", "a") is None
    assert not path.exists()


def put(path: Path, what: str) -> None:
    """Something that is not our file, under the name of an entry."""
    path.unlink(missing_ok=True)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
        (path / "inside").write_text("kept")
    elif what == "large":
        with path.open("wb") as file:
            file.truncate(MOST_BYTES + 1)
    elif what == "dangling":
        path.symlink_to("nowhere")
    else:
        (path.parent.parent / "victim").write_bytes(b"content")
        path.symlink_to("../victim")


SPECIAL = ("fifo", "folder", "large", "link", "dangling")


@pytest.mark.parametrize("what", SPECIAL)
def test_what_is_no_file_of_ours_is_a_miss_and_is_replaced(store: FileStore, what: str) -> None:
    store.write_sealed("things", "a", b"content")
    put(store.path("things", "a"), what)
    assert store.read("things", "a") is None
    assert store.read_sealed("things", "a") is None
    store.write_sealed("things", "a", b"content")
    assert store.read_sealed("things", "a") == b"content"
    if what == "folder":
        (kept,) = store.folder.glob("things/.aside-*/inside")
        assert kept.read_text() == "kept"
    if what == "link":
        assert (store.folder / "victim").read_bytes() == b"content"


@pytest.mark.parametrize("what", ["fifo", "file"])
def test_what_is_no_folder_makes_way(store: FileStore, what: str) -> None:
    path = store.folder / "things"
    os.mkfifo(path) if what == "fifo" else path.write_bytes(b"")
    assert store.read("things", "a") is None
    assert store.newest("things", 3) == []
    store.write("things", "a", b"content")
    assert store.read("things", "a") == b"content"


@pytest.mark.parametrize("what", SPECIAL)
def test_a_lock_waits_for_no_pipe_and_follows_no_link(store: FileStore, what: str) -> None:
    with store.locked("name"):
        pass
    (lock,) = (store.folder / "locks").iterdir()
    put(lock, what)
    with store.locked("name"):
        pass
    assert not (store.folder / "locks" / "nowhere").exists()


def test_a_seal_is_that_of_its_name_and_kind(store: FileStore) -> None:
    """An entry moved to another's place is not an entry there."""
    first = store.write_sealed("things", "a", b"first")
    for kind, name in (("things", "b"), ("others", "a")):
        store.write_sealed(kind, name, b"second")
        store.path(kind, name).write_bytes(first.read_bytes())
        assert store.read_sealed(kind, name) is None


def test_what_is_in_use_outlives_any_capacity(tmp_path: Path) -> None:
    small = FileStore(tmp_path, capacity=1)
    for name in "ab":
        small.write("things", name, bytes(100))
    small.sweep()
    assert small.read("things", "a") == bytes(100)
    age(small, "things", "b", int(IN_USE_SECONDS) + 60)
    small.sweep()
    assert small.read("things", "a") == bytes(100)
    assert small.read("things", "b") is None
    age(small, "things", "a", -1000)
    assert small.sweep() == 100, "a time that is still to come is no time of use"


def test_nothing_is_left_of_a_write_that_fails(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OSError("full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        store.write("things", "a", b"x")
    assert list((store.folder / "things").iterdir()) == []


def test_the_least_recently_used_go_first(store: FileStore) -> None:
    for i in range(5):
        store.write("things", str(i), bytes(180))
        age(store, "things", str(i), 2000 - i)
    assert store.read("things", "0") is not None
    store.write("things", "5", bytes(180))
    left = {name for name in "012345" if store.path("things", name).exists()}
    assert left == {"0", "3", "4", "5"}


def test_a_store_under_its_capacity_keeps_all(store: FileStore) -> None:
    store.write("things", "a", bytes(999))
    assert store.sweep() == 0


def test_a_process_looks_through_the_folder_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sweeps: list[Path] = []
    monkeypatch.setattr(FileStore, "sweep", lambda store: sweeps.append(store.folder))
    for number in range(3):
        open_store(tmp_path / "one").write("kernels", str(number), b"")
    open_store(tmp_path / "two").write("kernels", "0", b"")
    assert sweeps == [tmp_path / "one", tmp_path / "two"]


def test_newest_first(store: FileStore) -> None:
    for i in range(4):
        store.write("things", str(i), b"")
        age(store, "things", str(i), 100 - i)
    assert store.newest("things", 2) == ["3", "2"]
    assert store.newest("nothing", 2) == []


def test_the_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path / "fresh"))
    monkeypatch.setenv("TCW_CACHE_BYTES", "12345")
    store = open_store()
    assert store.folder == tmp_path / "fresh"
    assert store.capacity == 12345
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert open_store(tmp_path / "other").folder == tmp_path / "other"


def test_the_folder_is_ours_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TCW_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert open_store().folder == tmp_path / "tcw" / "engine"


def test_a_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(CacheRefused, match="chmod 700"):
        open_store(tmp_path / "open")


def test_work_goes_on_without_a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path / "open"))
    store, why = usable_store()
    assert "chmod 700" in why
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert usable_store()[0].folder == store.folder
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path / "private"))
    assert usable_store()[1] == ""


ENDS = """
import os, sys
from tcw.compiler.runtime.store import usable_store
folder = usable_store()[0].folder
if os.fork() == 0:
    sys.exit()
os.wait()
print(folder.is_dir(), folder)
"""


def test_a_private_folder_lives_as_long_as_the_process_that_made_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", ENDS],
        env={**os.environ, "TCW_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    lived, folder = done.stdout.split()
    assert lived == "True"
    assert not Path(folder).exists()


def test_digest_is_sha256() -> None:
    assert digest(b"").startswith("e3b0c44298fc1c14")
