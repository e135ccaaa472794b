"""Options of several verbs, the settings that follow from them, and the way to the screen."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import click
from msgspec import structs

from tcw.compiler.protocol.decision import ENGINES as DECIDING
from tcw.compiler.protocol.decision import engine_of
from tcw.compiler.protocol.edits import KINDS, EditError, read_edit
from tcw.compiler.protocol.override_file import OverrideError, read_overrides
from tcw.compiler.protocol.stages import STAGES
from tcw.compiler.protocol.torch_settings import SettingError, read_setting
from tcw.compiler.trace.records import Settings, Stage
from tcw.compiler.trace.records.session import GradMode
from tcw.viewers.teaching.predict import QUESTIONS
from tcw.workbench import linux
from tcw.workbench.request import codes
from tcw.workbench.request.config import apply_defaults
from tcw.workbench.request.files import python_file

ENGINES = ("inductor", "tcw", "both")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

Decorated = TypeVar("Decorated")


class FileCommand(click.Command):
    """Keeps what comes after `--` for the user's script. Its output has one form."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest: list[str] = []
        if "--" in args:
            at = args.index("--")
            args, rest = args[:at], args[at + 1 :]
        ctx.meta["tcw.arguments"] = tuple(rest)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.params.get("as_markdown") and ctx.params.get("as_json"):
            raise click.UsageError("--json and --markdown exclude each other")
        return super().invoke(ctx)


def path_option(*names: str, help: str, metavar: str = "FILE") -> Callable[[Any], Any]:
    """An option that names a file or a folder."""
    return click.option(*names, type=click.Path(path_type=Path), metavar=metavar, help=help)


def repeatable(
    *names: str, metavar: str, help: str, read: Callable[[str], str] | None = None
) -> Callable[[Any], Any]:
    """An option that may be given several times. `read` turns each text into what is passed on, and
    raises an error whose message says what is expected."""

    def checked(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(read(value) for value in values) if read is not None else values
        except (EditError, SettingError, ValueError) as error:
            raise click.BadParameter(str(error)) from error

    help = f"{help} Repeatable."
    return click.option(*names, multiple=True, metavar=metavar, callback=checked, help=help)


def _dimension(text: str) -> str:
    name, _, dimension = text.rpartition(":")
    if not name or not dimension.removeprefix("-").isdigit():
        raise ValueError(f"{text!r}: expected NAME:DIM, such as x:0")
    return text


def _edit(text: str) -> str:
    edit = read_edit(text)
    if edit.kind not in KINDS:
        raise EditError(f"{str(edit)!r}: the kinds of edit are {', '.join(KINDS)}")
    return str(edit)


cached_option = click.option(
    "--cached", is_flag=True, help="Use torch's caches; cache hits are not recorded in detail."
)

timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after this many seconds.",
)


def call_option(what: str) -> Callable[[Any], Any]:
    """`--call N` of a command that does something to one call."""
    return click.option(
        "--call",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help=f"The call to {what}, if the file has several input sets.",
    )


trace_option = path_option("--trace", help="Save the recording to this file.", metavar="PATH")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON (docs/json.md)."
)
markdown_option = click.option(
    "--markdown",
    "as_markdown",
    is_flag=True,
    help="Print the result as Markdown, for a GitHub issue or a chat.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress on stderr.")

_MODEL: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--model", default="", metavar="EXPR", help="Expression for the model, evaluated in FILE."
    ),
    repeatable("--inputs", metavar="SPEC", help="Inputs of one call, such as 'f32[8,64]'."),
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="inductor",
        metavar="ENGINE",
        help="inductor, tcw (our own compiler), or both side by side.",
    ),
    repeatable(
        "--override",
        metavar="FILE|ID=CHOICE",
        help='Override decisions of either engine: one "ID=CHOICE", or a TOML file of lines '
        '"decision id" = "choice".',
    ),
    click.option("--no-grad", is_flag=True, help="Run under torch.no_grad()."),
    click.option("--inference-mode", is_flag=True, help="Run under torch.inference_mode()."),
    click.option(
        "--train", is_flag=True, help="Run forward, and backward from a loss on the outputs."
    ),
    click.option(
        "--mode",
        type=click.Choice(MODES),
        default="default",
        metavar="MODE",
        help=f"torch.compile's mode: {', '.join(MODES[1:])}.",
    ),
    click.option("--fullgraph", is_flag=True, help="Fail on a graph break."),
    click.option(
        "--dynamic/--no-dynamic", default=None, help="torch.compile's dynamic=True or False."
    ),
    repeatable(
        "--mark-dynamic",
        metavar="NAME:DIM",
        read=_dimension,
        help="Mark a dimension of an argument as dynamic.",
    ),
    repeatable(
        "--as-tensor",
        "as_tensors",
        metavar="NAME",
        help="Pass this number to each call as a tensor.",
    ),
    repeatable(
        "--set",
        "torch_settings",
        metavar="LINE",
        read=lambda text: read_setting(text).code,
        help="Change a torch setting: 'capture_scalar_outputs = True'.",
    ),
    repeatable(
        "--edit",
        "edits",
        metavar="KIND:LINE",
        read=_edit,
        help="Run an in-memory copy of the file with a statement changed: drop:15 removes line 15 "
        "(all kinds: docs/cli.md).",
    ),
)
_MACHINE: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--device",
        type=click.Choice(["cpu", "cuda"]),
        default="cpu",
        help="cuda: also predict GPU code.",
    ),
    click.option(
        "--arch", default="", metavar="sm_90", help="The GPU architecture to predict for."
    ),
    cached_option,
)


ascii_option = click.option(
    "--ascii",
    "ascii_only",
    is_flag=True,
    help="Draw with ASCII only, for fonts that lack our glyphs or draw them wide.",
)

until_option = click.option(
    "--until",
    type=click.Choice(STAGES),
    default="run",
    help=f"Stop after this stage: {', '.join(STAGES)}.",
    metavar="STAGE",
)

questions_option = click.option(
    "--questions",
    type=click.IntRange(min=0),
    default=QUESTIONS,
    show_default=True,
    metavar="N",
    help="With --predict: at most N questions per graph, the best ones; 0 for every pair.",
)


def model_options(command: Decorated) -> Decorated:
    """What to compile, and how."""
    return _all(_MODEL, command)


def recording_options(command: Decorated) -> Decorated:
    """All that says how a recording is made."""
    level = click.option(
        "--record",
        type=click.Choice(["default", "steps"]),
        default="default",
        metavar="LEVEL",
        help="steps: also record every instruction that Dynamo interprets.",
    )
    return _all((*_MODEL, until_option, level, *_MACHINE, timeout_option), command)


def machine_options(command: Decorated) -> Decorated:
    """Which machine to compile for, and whether to use caches."""
    return _all(_MACHINE, command)


def _all(options: tuple[Callable[[Any], Any], ...], command: Decorated) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def importing_screen(verb: str) -> Iterator[None]:
    """While the workbench is imported. Raises `click.UsageError` if there is no terminal for it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) and "TEXTUAL_DRIVER" not in os.environ:
        raise click.UsageError(f"tcw {verb} needs a terminal: its input or output is redirected")
    gc.disable()  # modules live as long as the process: collecting them is wasted time
    yield
    gc.freeze()
    gc.enable()


class NeedsLinux(click.ClickException):
    """Nothing can be recorded on this system."""

    exit_code = codes.MACHINE


def need_linux() -> None:
    """Raise `NeedsLinux` elsewhere."""
    if obstacle := linux.why_not():
        raise NeedsLinux(
            f"{obstacle}. What was recorded on Linux can be read here: tcw open RUN.tcw"
        )


def project_settings(ctx: click.Context, file: Path) -> Settings:
    """The settings for a recording of a Python file; its project has the options that the command
    line does not give. Raises `click.UsageError` if they contradict each other."""
    python_file(file)
    apply_defaults(ctx, file.resolve().parent)
    return settings_of(ctx, file)


def settings_of(ctx: click.Context, file: Path) -> Settings:
    """The settings of a recording, from the options. Raises `click.UsageError` if they contradict
    each other, and `NeedsLinux`."""
    need_linux()
    given = ctx.params
    grads: list[tuple[str, GradMode]] = [
        ("no_grad", "no-grad"),
        ("inference_mode", "inference"),
        ("train", "train"),
    ]
    chosen = [mode for name, mode in grads if given[name]]
    if len(chosen) > 1:
        raise click.UsageError("--no-grad, --inference-mode and --train exclude each other")
    arch = str(given.get("arch", ""))
    if arch and not (arch.startswith("sm_") and arch[3:].rstrip("a").isdigit()):
        raise click.UsageError(f"--arch {arch}: expected sm_80, sm_90, sm_100, …")
    device: Literal["cpu", "cuda"] = "cuda" if arch else given.get("device", "cpu")
    return Settings(
        file=str(file.resolve()),
        model=given["model"],
        inputs=tuple(given["inputs"]),
        engine=given["engine"],
        overrides=_overrides(ctx),
        mode="" if given["mode"] == "default" else given["mode"],
        dynamic=given["dynamic"],
        fullgraph=given["fullgraph"],
        mark_dynamic=tuple(given["mark_dynamic"]),
        as_tensors=tuple(given["as_tensors"]),
        torch_settings=tuple(given["torch_settings"]),
        edits=tuple(given["edits"]),
        grad=chosen[0] if chosen else "grad",
        until=cast(Stage, given.get("until", "run")),
        record=given.get("record", "default"),
        device=device,
        arch=arch or ("sm_90" if device == "cuda" else ""),
        cached=given["cached"],
        timeout=given.get("timeout"),
        arguments=ctx.meta.get("tcw.arguments", ()),
        defaults_from=ctx.meta.get("tcw.defaults_from", ""),
    )


def _overrides(ctx: click.Context) -> dict[str, str]:
    found: dict[str, str] = {}
    for given in ctx.params["override"]:
        id, equals, choice = str(given).partition("=")
        try:
            if equals and engine_of(id.strip()) in DECIDING and not Path(given).exists():
                found[id.strip()] = choice.strip()
            else:
                found |= read_overrides(Path(given))
        except OverrideError as error:
            raise click.UsageError(str(error)) from error
    return found


@dataclass(frozen=True)
class SettingsChange:
    """The settings that options lead to, starting from the base."""

    settings: Settings
    reason: str = ""
    """Why the change cannot be tried."""


_MODEL_PARSER = click.command("tcw profile")(model_options(lambda **_: None))


def _given(options: Sequence[str]) -> dict[str, Any]:
    """The options given, parsed like the command line. Raises `click.UsageError`."""
    context = _MODEL_PARSER.make_context("tcw profile", list(options))
    there = click.core.ParameterSource.COMMANDLINE
    return {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is there
    }


def changed_by(settings: Settings, options: Sequence[str]) -> SettingsChange:
    """The settings changed by the options, which are parsed like the command line."""
    try:
        given = _given(options)
    except click.UsageError as error:
        return SettingsChange(settings, f"{' '.join(options)}: {error.format_message()}")
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if name == "override":
            pairs = (str(one).partition("=") for one in value)
            changes["overrides"] = settings.overrides | {id: choice for id, _, choice in pairs}
        elif name in ("mark_dynamic", "as_tensors", "torch_settings", "edits"):
            changes[name] = tuple(dict.fromkeys((*getattr(settings, name), *value)))
        elif name == "mode":
            changes[name] = "" if value == "default" else value
        elif name in ("engine", "dynamic", "fullgraph"):
            changes[name] = value
        else:
            return SettingsChange(
                settings, f"--{name.replace('_', '-')} changes what runs, not how"
            )
    return SettingsChange(structs.replace(settings, **changes))
