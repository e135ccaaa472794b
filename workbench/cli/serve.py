"""Show the workbench in a browser instead of this terminal.

FILE is a model file, for `tcw step`, or a trace, for `tcw open`; options after it go to that verb:

\b
  tcw serve run.tcw
  tcw serve model.py --engine tcw --break first-rejection

The printed address contains a key, without which no page opens. Each page is a workbench of its
own; closing the page ends it. A page that shows a trace runs nothing unless you give --allow-run.
"""

from __future__ import annotations

import ipaddress
import socket
from importlib.util import find_spec
from pathlib import Path

import click

from tcw.workbench.request import codes
from tcw.workbench.request.files import existing_file, is_trace, python_file
from tcw.workbench.request.options import FileCommand, need_linux

LACKING = (
    "tcw serve needs the package textual-serve, which is not installed: pip install textual-serve"
)
EXPOSED = (
    "--host {host}: anyone who reaches that address and has seen the key (nothing is encrypted) "
    "can run code as you. With ssh -L {port}:127.0.0.1:{port}, a remote browser needs no such "
    "address. Give --allow-remote to use it anyway"
)


@click.command(
    name="serve", cls=FileCommand, help=__doc__, context_settings={"ignore_unknown_options": True}
)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="The port to listen on; 0 picks a free one.",
)  # fmt: skip
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option(
    "--allow-run", is_flag=True, help="With a trace: allow recompiling its file from the browser."
)
@click.option(
    "--font-size", type=click.IntRange(6, 72), default=16, show_default=True,
    help="Font size in pixels.",
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context,
    file: Path,
    options: tuple[str, ...],
    host: str,
    port: int,
    allow_remote: bool,
    allow_run: bool,
    font_size: int,
) -> int:
    need_linux()
    if str(file).startswith("-"):
        raise click.UsageError(f"FILE comes first, then options such as {file}")
    if not (allow_remote or _is_loopback(host)):
        raise click.UsageError(EXPOSED.format(host=host, port=port or 8000))
    arguments = ctx.meta["tcw.arguments"]
    rest = ["--", *arguments] if arguments else []
    words = _words(file, [*options, *rest], allow_run)
    if find_spec("textual_serve") is None:
        raise click.UsageError(LACKING)
    listening = _listen(host, port)
    from tcw.workbench.web.server import Pages

    with listening:
        Pages(words, host, listening, font_size).run()
    return codes.OK


def _words(file: Path, rest: list[str], allow_run: bool) -> list[str]:
    """The verb and arguments of a page's process. Raises `click.UsageError` if they are wrong."""
    existing_file(file)
    if is_trace(file):
        from tcw.workbench.cli import open as opening

        opening.check(file)
        words = [str(file), *([] if allow_run else ["--view-only"]), *rest]
        opening.command.make_context("open", list(words))
        return ["open", *words]
    from tcw.workbench.cli import step

    python_file(file)
    if allow_run:
        raise click.UsageError(f"--allow-run is for traces; a model always runs: {file}")
    words = [str(file), *rest]
    step.breakpoints_of(step.command.make_context("step", list(words)), file)
    return ["step", *words]


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = error.strerror or str(error)
        hint = "; --port 0 picks a free one" if port else ""
        raise click.UsageError(f"{host}:{port}: {why}{hint}") from error
