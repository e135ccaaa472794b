"""Check that models still compile to what was accepted: graphs, breaks, kernels, memory.

The targets are in the project's `tcw.toml` (or `[tool.tcw.check]`), the accepted facts in
`tcw.budget.toml` next to it, one per line. A target that fails is compared with the revision at
which its budget was accepted, so that the report says which line is the cause. Checking runs the
files that the project names, as its tests would.

\b
  tcw check                          every target
  tcw check block mlp                these
  tcw check --accept                 accept what they compile to now, for review
  tcw check --changed-since main     those that the change can touch
  tcw check --executor ray           on a Ray cluster
  tcw check --format markdown        a comment for a pull request
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcw.compiler.trace.output_file import OutputKind, words, write
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request import codes
from tcw.workbench.request.messages import room, say
from tcw.workbench.request.options import json_option, need_linux, quiet_option

if TYPE_CHECKING:
    from tcw.viewers.check.result import TargetResult
    from tcw.workbench.check.budget_file import Accepted
    from tcw.workbench.check.runs import Checked
    from tcw.workbench.check.targets import Project

_NEVER = "\0"
"""No report begins like this: such a file is not overwritten."""
_BEGINS = {
    "text": _NEVER,
    "json": '{\n  "version": 1,\n  "failed": ',
    "markdown": "<!-- tcw check -->",
    "github": _NEVER,
    "junit": '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>',
    "sarif": '{\n  "$schema": "https://docs.oasis-open.org/sarif/',
}
_KINDS = {
    format: OutputKind(
        f"{format} report", partial(lambda begin, head: head.startswith(begin), begin.encode())
    )
    for format, begin in _BEGINS.items()
}
FORMATS = tuple(_BEGINS)


@click.command(name="check", help=__doc__)
@click.argument("targets", nargs=-1, metavar="[TARGET…]")
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The project's tcw.toml or pyproject.toml; else that of the current folder.",
)
@click.option("--accept", is_flag=True, help="Accept the facts of these targets.")
@click.option(
    "--changed-since",
    metavar="REV",
    help="Only targets that import a file changed since this git revision.",
)
@click.option(
    "--base",
    metavar="REV",
    help="Look for causes since this git revision; else since the budget was accepted.",
)
@click.option("--no-cause", is_flag=True, help="Do not record the base of a failing target.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Targets at a time; else what cores and free memory allow.",
)
@click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="ray: spread the targets over a Ray cluster (RAY_ADDRESS, else one on this machine).",
)
@click.option("--strict", is_flag=True, help="Fail on improvements too, so that they get accepted.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    callback=lambda ctx, option, values: _formats(ctx, option, values),
    metavar="FORMAT[=FILE]",
    help=f"{', '.join(FORMATS)}; to stdout or a file. Repeatable.",
)
@json_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], **_: object) -> int:
    need_linux()
    from tcw.workbench.check import budget_file, runs
    from tcw.workbench.check.targets import NoProject, find, read

    given = ctx.params
    try:
        project = read(given["config"] or find(Path()), targets)
        file = project.folder / budget_file.NAME
        budget = budget_file.read(file)
        if given["changed_since"]:
            touched = runs.changed_since(project, given["changed_since"], file, budget)
            project = type(project)(project.file, tuple(touched))
    except (NoProject, budget_file.BadBudget) as error:
        raise click.UsageError(str(error)) from error
    formats = (("json", None),) if given["as_json"] else given["formats"]
    outputs = Outputs(*filter(None, (target.settings for target in project.targets)))
    for format, output in formats:
        outputs.expect("--format", output, _KINDS[format])
    base = "" if given["no_cause"] or given["accept"] else given["base"]
    if base is None:
        base = runs.last_accepted(file)
    progress = _Progress(len(project.targets), bool(given["quiet"]))
    made = partial(runs.check, project, budget, base=base, on_result=progress.done)
    jobs = given["jobs"] or 0
    if given["executor"] == "ray":
        from tcw.workbench.check.on_ray import NoRay, OnRay

        try:
            checked = made(jobs=jobs or len(project.targets), record=OnRay(runs.BYTES_A_RUN))
        except NoRay as error:
            raise click.UsageError(str(error)) from error
    else:
        checked = made(jobs=jobs)
    progress.end()
    results = [one.result for one in checked]
    if given["accept"]:
        return _accept(file, budget, project, checked)
    _show(results, formats, project, outputs)
    if any(result.outcome == "interrupted" for result in results):
        return outputs.code(codes.INTERRUPTED)
    bad = ("better",) if given["strict"] else ()
    failed = any(result.fails or result.outcome in bad for result in results)
    return outputs.code(codes.FINDING if failed else codes.OK)


def _formats(
    ctx: click.Context, _: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, Path | None], ...]:
    found = []
    for value in values or ("text",):
        name, equals, file = value.partition("=")
        if name not in FORMATS or (equals and not file):
            raise click.BadParameter(
                f"{value!r}: expected one of {', '.join(FORMATS)}, or FORMAT=FILE"
            )
        found.append((name, Path(file) if file else None))
    if sum(file is None for _name, file in found) > 1:
        raise click.BadParameter(
            "only one format can go to stdout: write the others to FORMAT=FILE"
        )
    return tuple(found)


def _made(results: Sequence[TargetResult], format: str, project: Project, encoding: str) -> str:
    """The results in a format that is a text of its own."""
    root, below = _repository(project)
    if format in ("json", "sarif"):
        from tcw.viewers.json_text import json_text

        if format == "json":
            from tcw.viewers.json_check import check_report

            return json_text(check_report(results), encoding=encoding)
        from tcw.viewers.check.sarif import sarif
        from tcw.workbench.cli.main import own_version

        return json_text(sarif(results, root, own_version(), below), encoding=encoding)
    from tcw.viewers.check.annotations import github
    from tcw.viewers.check.junit import junit
    from tcw.viewers.check.markdown import markdown
    from tcw.viewers.check.text import check_text

    makers = {
        "text": lambda: check_text(results),
        "markdown": lambda: markdown(results),
        "github": lambda: github(results, root, below),
        "junit": lambda: junit(results),
    }
    return makers[format]()


def _repository(project: Project) -> tuple[str, str]:
    """The repository's folder, which code hosts take paths from, and the project's below it."""
    from tcw.workbench.request.revisions import NoRevision, repository

    folder = project.folder.resolve()
    try:
        top = repository(folder / "file")
    except NoRevision:
        top = folder
    return str(top), "" if top == folder else folder.relative_to(top).as_posix()


def _show(
    results: Sequence[TargetResult],
    formats: Sequence[tuple[str, Path | None]],
    project: Project,
    outputs: Outputs,
) -> None:
    for format, file in formats:
        if file is not None:
            text = _made(results, format, project, "utf-8")
            outputs.write("--format", file, text, _KINDS[format])
        elif format == "text":
            from tcw.viewers.check.text import check_lines
            from tcw.viewers.text.lines import write

            write(check_lines(results), sys.stdout, room()[0])
        else:
            sys.stdout.write(_made(results, format, project, sys.stdout.encoding or "utf-8"))


def _accept(
    file: Path, budget: dict[str, Accepted], project: Project, checked: list[Checked]
) -> int:
    """Write what was found into the budget; targets that could not be recorded keep theirs."""
    from tcw.viewers.words import plural
    from tcw.workbench.check import budget_file

    code = codes.OK
    for one, target in zip(checked, project.targets, strict=True):
        result = one.result
        if result.outcome in ("failed", "interrupted"):
            say(f"{target.name} is not accepted: {result.failure or result.outcome}")
            code = codes.MODEL_FAILED if result.outcome == "failed" else codes.INTERRUPTED
            continue
        known = budget.setdefault(target.name, budget_file.Accepted(result.torch))
        known.accept(result.torch, one.facts)
        print(f"{target.name}: {plural(len(one.facts), 'fact')} accepted")
    try:
        write(file, budget_file.text(budget).encode(), budget_file.KIND)
    except OSError as error:
        say(f"{file} was not written: {words(error)}")
        return codes.UNWRITTEN
    return code


class _Progress:
    """A line a finished target, on stderr."""

    def __init__(self, targets: int, quiet: bool) -> None:
        self._left = targets
        self._quiet = quiet or targets < 2

    def done(self, result: TargetResult) -> None:
        self._left -= 1
        if not self._quiet:
            left = f", {self._left} left" if self._left else ""
            say(f"{result.name}: {result.outcome}{left}")

    def end(self) -> None:
        self._quiet = True
