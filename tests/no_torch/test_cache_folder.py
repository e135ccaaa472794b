"""The cache folder is ours alone, or it is refused."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tcw.compiler.cache_folder import CacheRefused, cache_folder, cache_path


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "tcw"


def test_it_is_made_private(home: Path) -> None:
    before = os.umask(0)
    try:
        assert cache_folder() == home
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert cache_folder() == home


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750, 0o701, 0o777])
def test_a_folder_open_to_others_is_refused(home: Path, mode: int) -> None:
    home.mkdir(parents=True)
    home.chmod(mode)
    with pytest.raises(CacheRefused, match=f"chmod 700 {home}"):
        cache_folder()


def test_a_link_is_refused(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    home.parent.mkdir()
    home.symlink_to(elsewhere)
    with pytest.raises(CacheRefused, match="link"):
        cache_folder()


def test_a_file_is_refused(home: Path) -> None:
    home.parent.mkdir()
    home.write_text("")
    with pytest.raises(CacheRefused, match="cannot be created"):
        cache_folder()


def test_a_folder_of_someone_else_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_folder()
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(CacheRefused, match="belongs to user"):
        cache_folder()


def test_a_place_that_cannot_be_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CacheRefused, match="cannot be created"):
        cache_folder()


@pytest.mark.parametrize("value", ["", "relative/cache"])
def test_only_an_absolute_setting_counts(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_path() == Path.home() / ".cache" / "tcw"


def test_asking_where_it_is_makes_nothing(home: Path) -> None:
    assert cache_path() == home
    assert not home.parent.exists()


def test_two_processes_may_make_it_at_once(home: Path) -> None:
    code = "from tcw.compiler.cache_folder import cache_folder; cache_folder()"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [each.wait(60) for each in started] == [0, 0]
    assert home.is_dir()
