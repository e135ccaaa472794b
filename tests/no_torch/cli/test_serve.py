"""`tcw serve`: who may come in, what is passed on, and that nothing stays behind."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.no_torch.cli.served import gone, served, until
from tests.no_torch.tui.conftest import block_file
from workbench.cli import codes, serve
from workbench.cli.main import main

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

__all__ = ["block_file"]


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of the servers that were started; none listens for long."""
    import workbench.web.server

    given: list[list[str]] = []

    class Pages:
        def __init__(self, words: list[str], listening: socket.socket) -> None:
            given.append(words)

        def run(self) -> None:
            pass

    monkeypatch.setattr(workbench.web.server, "Pages", Pages)
    return given


def test_a_trace_is_opened_and_a_model_stepped(
    words: list[list[str]], block_file: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.py"
    model.write_text("model = 1\n")
    assert main(["serve", str(block_file), "--port", "0", "--predict"]) == codes.OK
    options = ["--engine", "tcw", "--break", "first-rejection", "--", "--port", "9"]
    assert main(["serve", str(model), "--port", "0", *options]) == codes.OK
    door = str(Path(serve.__file__).parents[2] / "tcw.py")
    assert main(["serve", str(block_file), "--port", "0", "--allow-runs", "--yes"]) == codes.OK
    assert words == [
        [sys.executable, "-P", door, "open", str(block_file), "--view-only", "--predict"],
        [sys.executable, "-P", door, "step", str(model), *options],
        [sys.executable, "-P", door, "open", str(block_file), "--yes"],
    ]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "example.org"])
def test_an_address_that_others_reach_is_refused(
    host: str, words: list[list[str]], block_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(block_file), "--port", "0", "--host", host]) == codes.USAGE
    assert "runs code as you" in capsys.readouterr().err
    assert words == []


def test_it_is_not_refused_where_it_is_meant(words: list[list[str]], block_file: Path) -> None:
    given = ["serve", str(block_file), "--port", "0", "--host", "0.0.0.0", "--allow-remote"]
    assert main(given) == codes.OK
    assert len(words) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nothing.tcw"], "is not there"),
        (["--predict", "block.tcw"], "the file comes first"),
        (["block.tcw", "--prdict"], "Did you mean '--predict'?"),
        (["model.py", "--break", "rejections"], "Did you mean 'rejection'?"),
        (["model.tcw"], "is no tcw trace"),
    ],
)
def test_what_cannot_be_is_said_before_a_page_is_opened(
    options: list[str],
    said: str,
    words: list[list[str]],
    block_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.tcw").write_bytes(block_file.read_bytes())
    for name in ("model.py", "model.tcw"):
        (tmp_path / name).write_text("model = 1\n")
    assert main(["serve", *options, "--port", "0"]) == codes.USAGE
    assert said in capsys.readouterr().err
    assert words == []


def test_a_port_that_is_taken_is_said(
    words: list[list[str]], block_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(block_file), "--port", port]) == codes.USAGE
    assert "--port 0 takes one that is free" in capsys.readouterr().err


def test_where_its_package_is_missing_the_command_is_said(
    block_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    assert main(["serve", str(block_file), "--port", "0"]) == codes.USAGE
    assert "pip install textual-serve" in capsys.readouterr().err


async def _status(session: Any, address: str) -> int:
    async with session.get(address, allow_redirects=False) as answer:
        return int(answer.status)


async def test_nobody_comes_in_without_the_key(block_file: Path, tmp_path: Path) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            for path in ("", "?key=wrong", "ws", "static/js/textual.js", "download/x"):
                assert await _status(session, server.site + path) == 403
            async with session.get(server.address) as answer:
                assert answer.status == 200
                assert str(answer.url) == server.site, "the key stays out of the history"
                page = await answer.text()
            assert "https:" not in page, "it would load something from elsewhere"
            assert await _status(session, f"{server.site}static/js/textual.js") == 200
        assert server.interrupt() == 0


async def test_a_page_is_a_process_that_ends_with_it_and_with_the_server(
    block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            (await session.get(server.address)).close()
            alone = server.family()
            async with session.ws_connect(f"{server.site}ws?width=100&height=30") as page:
                shown = b""
                while b"overview" not in shown:
                    shown += await page.receive_bytes(timeout=60)
                first = server.family() - alone
                assert first
            assert until(lambda: server.family() == alone)
            async with session.ws_connect(f"{server.site}ws?width=100&height=30") as page:
                await page.receive_bytes(timeout=60)
                everyone = server.family()
                assert len(everyone) > len(alone)
                assert server.interrupt() == 0
                assert gone(everyone)
