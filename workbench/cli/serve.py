"""Show the workbench in a browser, instead of this terminal.

FILE is a model file, for `tcw step`, or a trace, for `tcw open`; what follows it goes to that verb:

\b
  tcw serve run.tcw
  tcw serve model.py --engine tcw --break first-rejection

The address that is printed has a key; without it nobody gets in. Each page that is opened is a
workbench of its own, and closing the page ends it.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from workbench.cli import codes
from workbench.cli.files import existing_file, is_trace, python_file

LACKING = (
    "tcw serve needs the package textual-serve, which is not installed: pip install textual-serve"
)
EXPOSED = (
    "--host {host}: whoever reaches that address, and has seen the key on its way (nothing is "
    "encrypted), runs code as you. With ssh -L {port}:127.0.0.1:{port} a browser elsewhere needs "
    "no such address; --allow-remote if it is meant all the same"
)


class ServeCommand(click.Command):
    """Keeps what comes after `--` for the user's script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["tcw.rest"] = args[at:]
        return super().parse_args(ctx, args[:at])


@click.command(
    name="serve", cls=ServeCommand, help=__doc__, context_settings={"ignore_unknown_options": True}
)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="0: any that is free.",
)  # fmt: skip
@click.option("--allow-remote", is_flag=True, help="Listen at a --host that others can reach.")
@click.option(
    "--allow-runs", is_flag=True, help="Of a trace: let pages compile its file again, if asked."
)
@click.pass_context
def command(
    ctx: click.Context,
    file: Path,
    options: tuple[str, ...],
    host: str,
    port: int,
    allow_remote: bool,
    allow_runs: bool,
) -> int:
    if str(file).startswith("-"):
        raise click.UsageError(f"the file comes first, and then {file} and the like", ctx)
    if not (allow_remote or _is_loopback(host)):
        raise click.UsageError(EXPOSED.format(host=host, port=port or 8000), ctx)
    words = _words(file, [*options, *ctx.meta["tcw.rest"]], allow_runs)
    if find_spec("textual_serve") is None:
        raise click.UsageError(LACKING, ctx)
    listening = _listen(ctx, host, port)
    from workbench.web.server import Pages

    with listening:
        Pages(words, listening).run()
    return codes.OK


def _words(file: Path, rest: list[str], allow_runs: bool) -> list[str]:
    """The command of a page's process; what is wrong with its options is said now."""
    existing_file(file)
    if is_trace(file):
        from workbench.cli import open as opening

        opening.check(file)
        rest = rest if allow_runs else ["--view-only", *rest]
        opening.command.make_context("open", [str(file), *rest])
        verb = "open"
    else:
        from workbench.cli import step

        python_file(file)
        step.breakpoints_of(step.command.make_context("step", [str(file), *rest]), file)
        verb = "step"
    door = Path(__file__).parents[2] / "tcw.py"
    return [sys.executable, "-P", str(door), verb, str(file), *rest]


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(ctx: click.Context, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = error.strerror or str(error)
        hint = "; --port 0 takes one that is free" if port else ""
        raise click.UsageError(f"{host}:{port}: {why}{hint}", ctx) from error
