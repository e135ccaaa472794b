"""Debugger for torch.compile: what it captured, where it broke, what it fused, what it cost."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Literal

import click

from tcw.workbench.request import codes
from tcw.workbench.request.messages import say, write_json

VERBS = (
    *("explain", "run", "profile", "diff", "check", "repro"),
    *("step", "open", "export", "serve", "doctor"),
)
"""In the order of `tcw --help`. Each is a module in this folder that defines `command`."""

EXAMPLES = """\b
Examples:
  tcw explain model.py                    what torch.compile did to the model
  tcw explain model.py --trace run.tcw    the same, and keep the recording
  tcw run train.py --epochs 1             what a program's processes compiled
  tcw profile model.py                    which kernel won, which lost, and why
  tcw diff --base main model.py           what a change does to compilation
  tcw step model.py                       drive the compile: stop, look, override
  tcw open run.tcw                        browse a recording in the terminal
  tcw export run.tcw -o run.html          the recording as one file to share
  tcw serve run.tcw                       browse it in a browser

\b
Exit codes: 0 ok, 1 a finding you asked to fail on, 2 usage, 3 the model failed,
4 an error in tcw, 5 an override was refused, 6 an output could not be written,
7 the machine is the cause (a full disk, a limit, no C++ compiler), 130 interrupted.
Results go to stdout, everything else to stderr.
"""


class Verbs(click.Group):
    """Imports a verb's module when the verb is used; `tcw --help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"tcw.workbench.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            raise click.UsageError(f"no verb {name!r}. {_meant(name)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, first_line(verb)) for verb in VERBS])


def _meant(name: str) -> str:
    from tcw.compiler.protocol.error_words import meant

    if close := meant(name, VERBS):
        return close
    if name.endswith(".py") or os.path.isfile(name):
        verb = "open" if name.endswith(".tcw") else "explain"
        return f"Did you mean 'tcw {verb} {name}'?"
    return f"Verbs: {', '.join(VERBS)}."


def first_line(verb: str) -> str:
    """The first line of a verb's docstring, read from its file because importing it is slower."""
    try:
        with open(
            os.path.join(os.path.dirname(__file__), f"{verb}.py"), encoding="utf-8"
        ) as stream:
            return stream.readline().strip().strip('"').rstrip(".")
    except OSError:
        return ""


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    click.echo(f"tcw {own_version()}")
    ctx.exit()


def own_version() -> str:
    """tcw's version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tcw")
    except PackageNotFoundError:
        return "not installed"


@click.group(
    cls=Verbs,
    help=__doc__,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version and exit.",
)
def tcw() -> None:
    pass


def main(arguments: list[str]) -> int:
    """Run the command line `arguments` and return the exit code. Never raises."""
    try:
        return _run(arguments)
    except Exception as error:
        from tcw.workbench.request.faults import report_fault

        code = report_fault(error, arguments)
        _json_of_failure(arguments, "internal", type(error).__name__, str(error))
        return code


def _run(arguments: list[str]) -> int:
    try:
        result = tcw.main(args=arguments, prog_name="tcw", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return codes.USAGE
    except click.UsageError as error:
        _usage(error, arguments)
        _json_of_failure(arguments, "usage", "UsageError", error.format_message())
        return error.exit_code
    except click.ClickException as error:
        say(error.format_message())
        _json_of_failure(arguments, "failed", type(error).__name__, error.format_message())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        _json_of_failure(arguments, "interrupted", "KeyboardInterrupt", "interrupted")
        return codes.INTERRUPTED
    return result if isinstance(result, int) else codes.OK


def _usage(error: click.UsageError, arguments: list[str]) -> None:
    say(error.format_message())
    verb = f"{arguments[0]} " if arguments[0] in VERBS else ""
    say(f"try 'tcw {verb}--help'")


def _json_of_failure(
    arguments: list[str],
    status: Literal["usage", "internal", "interrupted", "failed"],
    kind: str,
    message: str,
) -> None:
    """With --json, stdout gets JSON even if there is only an error to report."""
    before_script = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" not in before_script or arguments[0] == "run":
        return
    from tcw.viewers.json_report import failed_report

    culprits: dict[str, Literal["tcw", "machine"]] = {"internal": "tcw", "failed": "machine"}
    write_json(failed_report(status, kind, message, culprits.get(status, "user")))
