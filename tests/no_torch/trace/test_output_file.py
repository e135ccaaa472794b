"""What tcw writes over, and what it never does; nothing is left of a write that fails."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tcw.compiler.trace import output_file
from tcw.compiler.trace.output_file import TRACE, OutputKind, OutputRefused, check, safe_name, write
from tcw.compiler.trace.records import Start
from tests.no_torch import traces

OURS = OutputKind("list of ours", lambda head: head.startswith(b"ours"))


def others(folder: Path) -> list[Path]:
    """All that is there beside `file` and what a test put there itself."""
    return [path for path in folder.iterdir() if path.name.startswith(".tcw-")]


def test_a_new_file_is_made_as_the_user_makes_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "new", b"words")
    finally:
        os.umask(before)
    assert (tmp_path / "new").read_bytes() == b"words"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert not others(tmp_path)


def test_only_one_of_its_kind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for before in (b"ours, of yesterday", b""):
        path.write_bytes(before)
        write(path, b"ours", OURS)
        assert path.read_bytes() == b"ours"
    path.write_bytes(b"theirs")
    with pytest.raises(OutputRefused, match="it exists and is not a list of ours"):
        write(path, b"ours", OURS)
    path.write_bytes(b"ours")
    with pytest.raises(OutputRefused, match="already exists"):
        write(path, b"more")
    assert path.read_bytes() == b"ours"
    assert not others(tmp_path)


@pytest.mark.parametrize("kind", [None, OURS, TRACE])
@pytest.mark.parametrize(
    ("thing", "why"),
    [
        ("link", "symbolic link"), ("dangling", "symbolic link"), ("loop", "symbolic link"),
        ("folder", "it is a folder"), ("fifo", "a pipe"),
        ("socket", "a socket"), ("/dev/null", "a device"),
        ("no/file", "no folder"), ("file/file", "Not a directory"),
        ("x" * 300, "too long"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_ours_is_left_alone(
    kind: OutputKind | None, thing: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"ours")
    Path("link").symlink_to("file")
    Path("dangling").symlink_to("made")
    Path("loop").symlink_to("loop")
    Path("folder").mkdir()
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for attempt in (check, lambda path, kind: write(path, b"ours", kind)):
            with pytest.raises(OutputRefused, match=why):
                attempt(Path(thing), kind)
    assert Path("file").read_bytes() == b"ours"
    assert not Path("made").exists()
    assert not others(tmp_path)


def test_a_folder_that_is_a_link_is_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link" / "file", b"words")
    assert (tmp_path / "real" / "file").read_bytes() == b"words"


@pytest.mark.parametrize("kind", [None, OURS])
@pytest.mark.parametrize("links", [True, False])
def test_whoever_came_first_keeps_the_name(
    kind: OutputKind | None, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that appears while ours is being written, also where there are no hard links."""
    path = tmp_path / "file"
    link = os.link

    def late(source: Path, target: Path) -> None:
        path.write_bytes(b"theirs")
        if not links:
            raise OSError(errno.EPERM, "no links")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(OutputRefused, match="already exists"):
        write(path, b"ours", kind)
    assert path.read_bytes() == b"theirs"
    assert not others(tmp_path)


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refused)
    write(tmp_path / "file", b"words")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"words")]


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_leaves_what_was_there(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if there:
        path.write_bytes(b"ours")
    full = os.open("/dev/full", os.O_WRONLY)
    opened = os.open

    def on_a_full_disk(name: Path, flags: int, mode: int = 0o777) -> int:
        return os.dup(full) if flags & os.O_EXCL else opened(name, flags, mode)

    monkeypatch.setattr(os, "open", on_a_full_disk)
    with pytest.raises(OSError, match="No space left"):
        write(path, b"ours, and more", OURS)
    monkeypatch.undo()
    os.close(full)
    assert path.exists() is there
    assert not there or path.read_bytes() == b"ours"
    assert not others(tmp_path)


READ_ONLY = """
import os, sys
from pathlib import Path
from tcw.compiler.trace.output_file import OutputRefused, check, TRACE
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for name, kind in (("closed/file", None), ("closed/run.tcw", TRACE), ("run.tcw", TRACE)):
    try:
        check(Path(sys.argv[1], name), kind)
        print("may")
    except OutputRefused as error:
        print(error)
"""


def test_what_may_not_be_written_is_known_before(tmp_path: Path) -> None:
    for name in ("closed/run.tcw", "run.tcw"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o444)
    (tmp_path / "closed").chmod(0o555)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        if os.getuid() == folder.stat().st_uid:
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("the folder")
    assert lines[1:] == ["it exists and is not writable"] * 2, done.stderr


def test_every_record_may_begin_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "run.tcw"
    for record in traces.clean():
        path.write_bytes(msgspec.json.encode(record))
        check(path, TRACE)
    assert isinstance(traces.clean()[0], Start)


@pytest.mark.parametrize(
    "head",
    [
        b'{"record": "start"}', b'{"record":"invoice","total":1}', b'{"record":1}', b'{"record"',
        b"import os", b"\x7fELF", b' {"record":"start"}', b"\0" * 300,
    ],
)  # fmt: skip
def test_what_only_looks_like_a_trace_is_none(head: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.tcw"
    path.write_bytes(head)
    with pytest.raises(OutputRefused, match="is not a trace"):
        check(path, TRACE)


def test_no_name_is_taken_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our temporary file never follows what somebody put under its name."""
    monkeypatch.setattr(output_file.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / "victim").write_bytes(b"safe")
    (tmp_path / ".tcw-guessed").symlink_to("victim")
    with pytest.raises(FileExistsError):
        write(tmp_path / "file", b"words")
    assert (tmp_path / "victim").read_bytes() == b"safe"
    assert (tmp_path / ".tcw-guessed").is_symlink()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("train", "train"),
        ("a/b c", "a_b_c"),
        ("../.hidden", "_.hidden"),
        ("-o", "o"),
        ("\x1b[31m", "__31m"),
        ("/", "program"),
        ("x" * 200, "x" * 80),
    ],
)
def test_a_name_from_elsewhere_is_made_a_files_name(name: str, safe: str) -> None:
    assert safe_name(name, "program") == safe
