"""Records the targets, several at a time, and compares what they compile to."""

from __future__ import annotations

import ast
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tcw.compiler.trace.reader import TraceError
from tcw.compiler.trace.records import End, Failure, Settings
from tcw.viewers.check.result import TargetResult
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.budget import budgeted, compare
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.differences.alignment import matched_line
from tcw.viewers.summary.facts import Fact, facts
from tcw.viewers.syntax import statements
from tcw.workbench.check.budget_file import Accepted, BadBudget, parsed
from tcw.workbench.check.targets import CheckTarget, Project
from tcw.workbench.request.revisions import NoRevision, at_revision
from tcw.workbench.worker.client import record


class RecordedTarget(NamedTuple):
    """A recording and how it ended."""

    recording: Recording
    end: End


class RecordTarget(Protocol):
    """Records the settings' file, at a git revision if one is given: `here`, or on a cluster.
    Raises `NoRevision`; `stop` ends it as interrupted."""

    def __call__(
        self, settings: Settings, revision: str, stop: threading.Event
    ) -> RecordedTarget: ...


def read(file: Path) -> RecordedTarget:
    """An existing trace, or a torch log. Nothing is run."""
    try:
        recording = Recording.open(file)
    except (TraceError, OSError) as error:
        failed = Failure(doing="reading it", type=type(error).__name__, message=str(error))
        return RecordedTarget(Recording([failed]), End(status="failed", seconds=0.0))
    return RecordedTarget(recording, recording.end or End(status="incomplete", seconds=0.0))


def here(settings: Settings, revision: str, stop: threading.Event) -> RecordedTarget:
    """See `RecordTarget`."""
    with ExitStack() as stack:
        if revision:
            file = stack.enter_context(at_revision(Path(settings.file), revision))
            settings = msgspec.structs.replace(settings, file=str(file))
        recording = Recording()
        end = record(settings, trace=None, on_record=lambda one: recording.feed([one]), stop=stop)
        if recording.end is None:
            recording.feed([end])
        return RecordedTarget(recording, end)


BYTES_A_RUN = 1536 << 20
"""Memory that one run may need, in bytes: torch, the compiler and a small model."""


@dataclass(frozen=True)
class Checked:
    """A target, what was found, and the facts that a budget has of it."""

    result: TargetResult
    facts: tuple[Fact, ...] = ()


def at_once(targets: int, jobs: int = 0) -> int:
    """How many targets to run at a time: as many as asked for, else what cores and free memory
    allow."""
    if jobs:
        return min(jobs, targets)
    cores = len(os.sched_getaffinity(0))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(targets, cores, free // BYTES_A_RUN))


def check(
    project: Project,
    budget: Mapping[str, Accepted],
    *,
    jobs: int = 0,
    base: str = "",
    on_result: Callable[[TargetResult], None] = lambda result: None,
    record: RecordTarget = here,
) -> list[Checked]:
    """Every target, in the project's order. `base`: the revision to compare with where a target
    fails, for the cause; "" looks for none. `on_result` is called as each target is done, in any
    order and any thread. `record` makes the recordings; where they are made elsewhere, `jobs` is
    how many are waited for. Ctrl-C ends the runs; the targets left are `interrupted`."""
    stop = threading.Event()

    def one(target: CheckTarget) -> Checked:
        if stop.is_set():
            return Checked(_result(project, target, interrupted=True))
        checked = _check(project, target, budget.get(target.name), base, stop, record)
        on_result(checked.result)
        return checked

    with ThreadPoolExecutor(at_once(len(project.targets), jobs)) as pool:
        futures = [pool.submit(one, target) for target in project.targets]
        while True:
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                stop.set()


def _check(
    project: Project,
    target: CheckTarget,
    accepted: Accepted | None,
    base: str,
    stop: threading.Event,
    record: RecordTarget,
) -> Checked:
    began = time.monotonic()
    settings = target.settings
    recording, end = read(target.file) if settings is None else record(settings, "", stop)
    torch = version_of(recording)
    if end.status == "interrupted":
        return Checked(_result(project, target, torch=torch, interrupted=True))
    found = facts(recording, summarise(recording), target.fused)
    counted = tuple(fact for fact in found if budgeted(fact, target.tolerances))
    failed = any(fact.group == "failure" for fact in found)
    if (failed and accepted is None) or end.status not in ("ok", "failed", "exited"):
        why = recording.failure
        words = f"the recording {end.status}" if settings else "the recording is cut off"
        if why is not None:
            words = f"{why.type}: {why.message}"
        result = _result(
            project,
            target,
            torch=torch,
            failure=words,
            failed_at=matched_line(why.location if why is not None else None),
            seconds=time.monotonic() - began,
        )
        return Checked(result, counted)
    if accepted is None:
        seconds = time.monotonic() - began
        return Checked(_result(project, target, torch=torch, new=True, seconds=seconds), counted)
    changes = compare(accepted.of(torch), found, target.tolerances)
    result = _result(
        project,
        target,
        torch=torch,
        changes=changes,
        facts=len(counted),
        accepted_under="" if accepted.knows(torch) else accepted.torch,
    )
    if base and any(change.fails for change in changes):
        result = _with_cause(result, target, recording, base, stop, record)
    seconds = time.monotonic() - began
    return Checked(replace(result, seconds=seconds), counted)


def _with_cause(
    result: TargetResult,
    target: CheckTarget,
    recording: Recording,
    base: str,
    stop: threading.Event,
    record: RecordTarget,
) -> TargetResult:
    """What changed since `base`, as in `tcw diff`."""
    if target.settings is None:
        return replace(
            result, no_cause="it is a recording: tcw diff compares it with an earlier one"
        )
    try:
        before, end = record(target.settings, base, stop)
    except NoRevision as error:
        return replace(result, no_cause=str(error))
    if end.status != "ok":
        return replace(result, base=base, no_cause=f"recording {base[:12]} {end.status}")
    effects = difference(before, recording).effects
    why = "" if effects else f"nothing has changed since {base[:12]}"
    return replace(result, base=base, effects=effects, no_cause=why)


def version_of(recording: Recording) -> str:
    """`2.13` of torch 2.13.0+cpu; "" if torch was not imported."""
    environment = recording.environment
    return ".".join(environment.torch.split("+")[0].split(".")[:2]) if environment else ""


def _result(project: Project, target: CheckTarget, **found: object) -> TargetResult:
    file = target.file.relative_to(project.folder.resolve())
    return TargetResult(name=target.name, file=str(file), **found)  # type: ignore[arg-type]


def last_accepted(budget: Path) -> str:
    """The commit that last changed the budget, at which the accepted facts held; "" if there is
    none."""
    from tcw.workbench.request.revisions import git

    try:
        found = git(budget.parent, "log", "-1", "--format=%H", "--", budget.name)
    except NoRevision:
        return ""
    return found.decode().strip()


def changed_since(
    project: Project, revision: str, budget: Path, now: Mapping[str, Accepted]
) -> Sequence[CheckTarget]:
    """The targets that a change since `revision` can touch: those that import a changed file,
    directly or not, those of which something else is accepted, and recordings, which are only read.
    Raises `NoRevision`."""
    from tcw.workbench.request.revisions import changed_files, text_at

    changed = changed_files(project.folder, revision)
    if project.file.resolve() in changed:
        return project.targets
    before: Mapping[str, Accepted] = now
    if budget.resolve() in changed:
        try:
            before = parsed(budget, text_at(budget, revision))
        except BadBudget:
            before = {}
    gone = {path for path in changed if not path.exists()}
    return [
        target
        for target in project.targets
        if target.settings is None
        or changed & reached_files(target.file, project.folder.resolve(), gone)
        or before.get(target.name) != now.get(target.name)
    ]


def reached_files(file: Path, root: Path, gone: Collection[Path] = ()) -> set[Path]:
    """The file and every file below `root` that it reaches. `gone`: deleted files, which an import
    may still name."""
    paths: set[Path] = set()
    left = [file.resolve()]
    main = file.resolve().parent
    while left:
        path = left.pop()
        if path in paths or not path.is_relative_to(root):
            continue
        paths.add(path)
        left += _imported(path, (main, root, root / "src"), gone)
    return paths


def _imported(file: Path, roots: tuple[Path, ...], gone: Collection[Path]) -> Iterator[Path]:
    try:
        tree = statements(file.read_bytes())
    except OSError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from _modules(name.name.split("."), roots, gone)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            folder = file.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            places = (folder,) if node.level else roots
            for name in node.names:
                yield from _modules([*parts, name.name], places, gone)


def _modules(parts: list[str], roots: tuple[Path, ...], gone: Collection[Path]) -> Iterator[Path]:
    """The files of `a.b.c`: each package's, the module's; the last part may be a name in one."""
    for root in roots:
        place = root
        for part in parts:
            place = place / part
            for path in (place / "__init__.py", place.with_suffix(".py")):
                if path.is_file() or path in gone:
                    yield path.resolve()
        if (root / "__init__.py").is_file():
            yield (root / "__init__.py").resolve()
