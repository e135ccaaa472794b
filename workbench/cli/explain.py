"""Record what torch.compile does to a model, and say what matters.

FILE holds `model` and `example_inputs`, or is a script that calls torch.compile itself.
`example_inputs` is one input set (a tuple, a dict, or a pair of both), a list of sets, each a call,
or a function that returns either. Arguments of a script come after `--`.

\b
  tcw explain model.py
  tcw explain model.py --train --show breaks,guards
  tcw explain model.py --until capture              seconds: no code is generated
  tcw explain model.py --model 'Net(64)' --inputs 'f32[8,64]' --inputs 'f32[16,64]'
  tcw explain train.py --trace run.tcw -- --epochs 1
"""

from __future__ import annotations

import shutil
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast

import click

from compiler.control.decisions import OverrideError, read_overrides
from compiler.control.stages import STAGES
from compiler.trace.records import AnyRecord, Decided, End, Settings, Stage
from compiler.trace.records.session import GradMode
from viewers.recording import Recording
from viewers.text.sections import DETAILS, SECTIONS
from workbench.cli import codes
from workbench.cli.config import apply_defaults
from workbench.cli.files import existing_file, new_trace
from workbench.cli.output import reader_may_leave
from workbench.cli.progress import ProgressLine

ENGINES = ("inductor", "tcw", "both")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class ExplainCommand(click.Command):
    """Keeps what comes after `--` for the user's script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest: list[str] = []
        if "--" in args:
            at = args.index("--")
            args, rest = args[:at], args[at + 1 :]
        ctx.meta["tcw.arguments"] = tuple(rest)
        return super().parse_args(ctx, args)


def _show(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    for wanted in names:
        name, equals, detail = wanted.partition("=")
        if name in SECTIONS and equals and detail not in DETAILS.get(name, ()):
            there = " or ".join(f"{name}={one}" for one in DETAILS.get(name, ()))
            raise click.BadParameter(f"{wanted}: it is {there or name}")
        if name not in SECTIONS:
            close = get_close_matches(name, SECTIONS, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are {', '.join(SECTIONS)}."
            raise click.BadParameter(f"there is no section {name!r}. {hint}")
    detailed = {wanted.partition("=")[0]: wanted for wanted in sorted(names)}
    return tuple(detailed[name] for name in SECTIONS if name in detailed)


def _dimensions(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        name, _colon, dimension = value.rpartition(":")
        if not name or not dimension.removeprefix("-").isdigit():
            raise click.BadParameter(f"{value!r}: it takes NAME:DIM, such as x:0")
    return values


@click.command(name="explain", cls=ExplainCommand, help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--model", default="", metavar="EXPR", help="The model, in the names of the file.")
@click.option(
    "--inputs", multiple=True, metavar="SPEC", help="Inputs of one call: 'f32[8,64]'. Repeatable."
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="inductor",
    metavar="ENGINE",
    help="inductor, tcw (our own compiler), or both, lined up.",
)
@click.option(
    "--override",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='Decisions to take otherwise, of either engine: TOML, "decision id" = "choice".',
)
@click.option("--no-grad", is_flag=True, help="Run under torch.no_grad().")
@click.option("--inference-mode", is_flag=True, help="Run under torch.inference_mode().")
@click.option("--train", is_flag=True, help="Run forward and backward of a loss on the outputs.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="default",
    metavar="MODE",
    help=f"torch.compile's mode: {', '.join(MODES[1:])}.",
)
@click.option("--fullgraph", is_flag=True, help="A graph break is an error.")
@click.option("--dynamic/--no-dynamic", default=None, help="torch.compile's dynamic=True or False.")
@click.option(
    "--mark-dynamic",
    multiple=True,
    metavar="NAME:DIM",
    callback=_dimensions,
    help="Mark a dimension of an argument as dynamic. Repeatable.",
)
@click.option(
    "--until",
    type=click.Choice(STAGES),
    default="run",
    help=f"The last stage to run: {', '.join(STAGES)}.",
    metavar="STAGE",
)
@click.option(
    "--record",
    type=click.Choice(["default", "steps"]),
    default="default",
    metavar="LEVEL",
    help="steps: every instruction that Dynamo runs, too.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    help="cuda: predict GPU code too.",
)
@click.option("--arch", default="", metavar="sm_90", help="The GPU to predict for.")
@click.option("--cached", is_flag=True, help="Use torch's caches; what they serve is not seen.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after it.",
)
@click.option("--trace", type=click.Path(path_type=Path), help="Keep the recording in this file.")
@click.option(
    "--show",
    multiple=True,
    callback=_show,
    metavar="SECTION,…",
    help=f"After the answer, show: {', '.join(SECTIONS)}; guards=all for every single guard.",
)
@click.option("--json", "as_json", is_flag=True, help="The result as JSON (docs/json.md).")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.pass_context
def command(ctx: click.Context, /, file: Path, **_: Any) -> int:
    existing_file(file)
    apply_defaults(ctx, file.resolve().parent)
    settings = settings_of(ctx, file)
    trace: Path | None = ctx.params["trace"]
    if trace is not None:
        new_trace(trace)
    recording = Recording()
    end = record(settings, trace, recording, quiet=bool(ctx.params["quiet"]))
    if recording.end is None:
        recording.feed([end])
    with reader_may_leave():
        if ctx.params["as_json"]:
            from viewers.json_report import encode, report

            sys.stdout.write(encode(report(recording)))
        else:
            show_text(recording, ctx.params["show"], trace)
    return exit_code(recording, end)


def settings_of(ctx: click.Context, file: Path) -> Settings:
    """The settings that the options ask for; `click.UsageError` where they contradict."""
    given = ctx.params
    grads: list[tuple[str, GradMode]] = [
        ("no_grad", "no-grad"),
        ("inference_mode", "inference"),
        ("train", "train"),
    ]
    chosen = [mode for name, mode in grads if given[name]]
    if len(chosen) > 1:
        raise click.UsageError("--no-grad, --inference-mode and --train exclude each other", ctx)
    arch = str(given["arch"])
    if arch and not (arch.startswith("sm_") and arch[3:].rstrip("a").isdigit()):
        raise click.UsageError(f"--arch {arch}: it takes sm_80, sm_90, sm_100, …", ctx)
    device: Literal["cpu", "cuda"] = "cuda" if arch else given["device"]
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
        grad=chosen[0] if chosen else "grad",
        until=cast(Stage, given["until"]),
        record=given["record"],
        device=device,
        arch=arch or ("sm_90" if device == "cuda" else ""),
        cached=given["cached"],
        timeout=given["timeout"],
        arguments=ctx.meta.get("tcw.arguments", ()),
    )


def _overrides(ctx: click.Context) -> dict[str, str]:
    file: Path | None = ctx.params["override"]
    if file is None:
        return {}
    try:
        return read_overrides(file)
    except OverrideError as error:
        raise click.UsageError(str(error), ctx) from error


def record(settings: Settings, trace: Path | None, recording: Recording, quiet: bool) -> End:
    """Make the recording, with its progress on stderr; `recording` grows as it goes."""
    from workbench.worker.client import record as record_in_worker

    with ProgressLine(sys.stderr, quiet) as progress:

        def take(one: AnyRecord) -> None:
            recording.feed([one])
            progress.see(one)

        return record_in_worker(settings, trace=trace, on_record=take)


def show_text(recording: Recording, show: tuple[str, ...], trace: Path | None) -> None:
    """Write the answer and the sections to stdout."""
    from viewers.text.explain import explain
    from viewers.text.lines import write

    size = shutil.get_terminal_size((100, 40))
    height = size.lines if sys.stdout.isatty() else 40
    width = max(80, min(size.columns, 300))
    write(explain(recording, width, height, show, str(trace or "")), sys.stdout, width)


def exit_code(recording: Recording, end: End) -> int:
    """0, or why there is no whole answer: 3 the model, 4 tcw, 5 an override, 130 the user."""
    failure = recording.failure
    if end.status == "interrupted":
        return codes.INTERRUPTED
    if failure is not None:
        return codes.INTERNAL if failure.culprit == "tcw" else codes.MODEL_FAILED
    if end.status != "ok":
        return codes.MODEL_FAILED
    refused = any(decided.refused for decided in recording.all(Decided))
    return codes.REFUSED if refused else codes.OK
