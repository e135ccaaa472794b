"""Sections about what was compiled: fusion, kernels, memory, times, both engines, output."""

from __future__ import annotations

from collections import Counter

from tcw.compiler.trace.records import Buffer, Decided, MemoryPlan, Output, OutputCapped, Partition
from tcw.viewers.collected import grouped
from tcw.viewers.kit.lines import BLANK, TextLine, apart, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.labels import WRITTEN_IN, KernelNames, binary_words
from tcw.viewers.plain import plain_lines
from tcw.viewers.summary.cudagraphs import CudagraphUse, cudagraph_costs, cudagraph_words
from tcw.viewers.summary.engine_comparison import Comparison, LineUp, compare
from tcw.viewers.summary.fusion import (
    GraphFusion,
    PairResult,
    grouped_elsewhere,
    node_labels,
    rule_words,
)
from tcw.viewers.summary.kernels import KernelRow
from tcw.viewers.summary.memory_plans import (
    by_choice,
    partition_words,
    peak_words,
    reuse_of,
    reuse_words,
)
from tcw.viewers.summary.profile import profile_of
from tcw.viewers.tables.engine_lines import graphs_lines, lineup_lines, stages_lines
from tcw.viewers.tables.kernel_lines import kernels_lines, saved_lines
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import NOT_IN_LOG, bytes_text, number, plural, seconds_text


def kernels(view: SectionView) -> list[TextLine]:
    """Every kernel and library call, with the user lines it comes from."""
    rows = view.summary.kernels.rows
    if not rows:
        return [heading("kernels", "none recorded: no graph reached code generation")]
    profile = profile_of(view.recording)
    seconds = profile.kernel_seconds if profile is not None else {}
    blocks = []
    for graph, mine in grouped((row.kernel.graph, row) for row in rows).items():
        predicted = all(row.kernel.predicted for row in mine)
        count = plural(len(mine), "kernel") + (", predicted" if predicted else "")
        lines = kernels_lines(mine, view.names, view.width, 2, seconds=seconds)
        binaries = [binary for row in mine for binary in _binaries(row)]
        blocks.append([heading(f"kernels {graph}", count), *lines, *binaries])
    untimed = line(("  times per kernel: not measured; tcw profile measures them", "dim"))
    return [*apart(blocks), *([] if seconds else [untimed])]


def _binaries(row: KernelRow) -> list[TextLine]:
    lines = []
    for binary in row.binaries:
        head = f"    {row.kernel.id} {binary.arch}  "
        if binary.error:
            lines.append(line((head, "dim"), ("not compiled: ", "bad"), binary.error, hang=8))
            continue
        facts = [binary.configuration, *binary_words(binary)]
        lines.append(line((head, "dim"), " · ".join(fact for fact in facts if fact), hang=8))
    return lines


LARGEST = 5
"""Maximum number of buffers listed of each graph, unknown sizes last."""


def memory(view: SectionView) -> list[TextLine]:
    """Peak, reuse and the largest buffers of each graph."""
    plans = view.recording.all(MemoryPlan)
    if not plans:
        return [heading("memory", "no plan recorded: no graph reached memory planning")]
    return apart(_plan(plan, view.width) for plan in plans)


def _plan(plan: MemoryPlan, width: int) -> list[TextLine]:
    reuse = reuse_of(plan)
    facts = f"{peak_words(plan, reuse)}, {reuse_words(reuse)}"
    own = [buffer for buffer in plan.buffers if buffer.kind != "input"]
    largest = sorted(own, key=lambda buffer: -(buffer.bytes or 0))[:LARGEST]
    rows = [_buffer(buffer) for buffer in largest]
    return [heading(f"memory {plan.graph}", facts), *table(rows, "lrllf", width, 2)]


def _buffer(buffer: Buffer) -> list[Cell]:
    reuse = f"→ reuses {buffer.reuses}" if buffer.reuses else ""
    return [
        buffer.name,
        bytes_text(buffer.bytes),
        (buffer.kind, "hot" if buffer.kind == "saved" else "dim"),
        (f"steps {buffer.first}–{buffer.last}", "dim"),
        " ".join(filter(None, [buffer.label, reuse, "in place" if buffer.inplace else ""])),
    ]


def autograd(view: SectionView) -> list[TextLine]:
    """What crosses from the forward to the backward, and why."""
    partitions = view.recording.all(Partition)
    if not partitions:
        return [heading("autograd", "no backward was recorded: record with --train")]
    return apart(_partition(view, partition) for partition in partitions)


def _partition(view: SectionView, partition: Partition) -> list[TextLine]:
    return [
        heading(f"autograd {partition.compile_id}", partition_words(partition)),
        *saved_lines(by_choice(partition), view.names, view.width, 2),
    ]


FEW = 40
"""Maximum number of decisions listed of each kind; `decisions=all` lists every one."""


def decisions(view: SectionView) -> list[TextLine]:
    """Our compiler's choices, by the ids used in override files."""
    decided = list(view.recording.decisions.decided.values())
    if not decided:
        return [heading("decisions", "none recorded: only the tcw engine makes them")]
    kinds = grouped(((one.graph, one.kind), one) for one in decided)
    return apart(_kind(graph, kind, mine, view) for (graph, kind), mine in kinds.items())


def _kind(graph: str, kind: str, decided: list[Decided], view: SectionView) -> list[TextLine]:
    changed = [one for one in decided if one.overridden or one.refused]
    rest = [one for one in decided if one not in changed]
    shown = rest if view.detail == "all" else rest[: max(0, FEW - len(changed))]
    rows = [_decision(one) for one in (*changed, *shown)]
    lines = [
        heading(f"decisions {graph} {kind}", plural(len(decided), "decision")),
        *table(rows, "llf", view.width, 2),
    ]
    left = len(rest) - len(shown)
    if left:
        lines.append(line((f"  … {plural(left, 'more', 'more')}: --show decisions=all", "dim")))
    return lines


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def _decision(decided: Decided) -> list[Cell]:
    numbers = " ".join(f"{name} {_figure(value)}" for name, value in decided.numbers.items())
    why = "  ".join(part for part in (decided.rule, decided.reason, numbers) if part)
    if decided.refused:
        return [
            decided.id,
            (decided.choice, "bad"),
            f"{decided.wanted} was refused: {decided.refused}",
        ]
    if decided.overridden:
        return [
            decided.id,
            (decided.choice, "warn"),
            f"overridden; the default is {decided.default}  {why}",
        ]
    return [decided.id, (decided.choice, "accent"), (why, "dim")]


FOLDED = 1000
"""Phases below this share of the time are counted on one line."""


def phases(view: SectionView) -> list[TextLine]:
    """Where the compile time went; own times add up, the last columns do not."""
    phases = view.summary.phases
    if not phases:
        return [heading("phases", "none recorded")]
    total = sum(phase.self_seconds for phase in phases)
    beside = sum(phase.beside_seconds for phase in phases)
    shown = [
        phase for phase in phases if max(phase.self_seconds, phase.beside_seconds) >= total / FOLDED
    ]
    rows: list[list[Cell]] = [
        [
            ("phase", "dim"),
            ("times", "dim"),
            ("own", "dim"),
            ("with inner", "dim"),
            ("on build threads" if beside else "", "dim"),
        ]
    ]
    rows += [
        [
            phase.name,
            number(phase.count),
            (seconds_text(phase.self_seconds), "strong"),
            seconds_text(phase.seconds),
            (seconds_text(phase.beside_seconds) if phase.beside_seconds else "", "dim"),
        ]
        for phase in shown
    ]
    lines = [
        heading("phases", f"{seconds_text(total)} of own time"),
        *table(rows, "frrrr", view.width, 2),
    ]
    folded = [phase for phase in phases if phase not in shown]
    if folded:
        rest = seconds_text(sum(time.self_seconds for time in folded))
        lines.append(line((f"  {plural(len(folded), 'phase')} below 0.1%: {rest}", "dim")))
    return lines


REASONS = 5
"""Distinct reasons shown per cache."""


def caches(view: SectionView) -> list[TextLine]:
    """Hits and misses of each compile cache."""
    caches = view.summary.caches
    if not caches:
        return [heading("caches", "no cache was queried")]
    lines = [heading("caches", plural(len(caches), "cache"))]
    for cache in caches:
        counts = f"{plural(cache.hits, 'hit')}, {plural(cache.misses, 'miss')}"
        if cache.bypasses:
            counts += f", {plural(cache.bypasses, 'bypass')}"
        if cache.saved_seconds:
            counts += f", {seconds_text(cache.saved_seconds)} saved"
        lines += table([[cache.cache, counts]], "ll", view.width, 2)
        lines += [line("      ", reason, fixed=True) for reason in cache.missed[:REASONS]]
        if len(cache.missed) > REASONS:
            lines.append(line((f"      … {len(cache.missed) - REASONS} more reasons", "dim")))
    return lines


def cudagraphs(view: SectionView) -> list[TextLine]:
    """What was recorded, how often and why again, and what was not."""
    uses, costs = view.summary.cudagraphs, cudagraph_costs(view.recording)
    log = bool(view.summary.not_in_log)
    if not uses and not costs:
        none = "none in this log" if log else "none was recorded, and none was skipped"
        return [heading("cudagraphs", none)]
    lines = [heading("cudagraphs", cudagraph_words(uses) or "none was recorded")]
    lines += table([_use(use) for use in uses], "llrrl", view.width, 2)
    if log:
        lines.append(line(f"  for which sizes, why again, what calls skipped: {NOT_IN_LOG}"))
    for cost in costs:
        at = cost.location
        where = f"{view.names.place(at.file, at.line)}  " if at else ""
        took = f", {seconds_text(cost.seconds)}" if cost.seconds is not None else ""
        lines.append(line(f"  {where}{cost.title}", (took, "dim"), hang=4))
        lines += [line("    ", (note, "dim"), hang=4) for note in cost.notes]
    return lines


def _use(use: CudagraphUse) -> list[Cell]:
    times = plural(len(use.recordings), "recording")
    sizes = len(use.sizes)
    several = f"for {sizes} sets of sizes" if sizes > 1 else ""
    memory = bytes_text(use.bytes) if use.bytes else ""
    name = f"{use.graph} {use.part}".strip()
    return [name, times, seconds_text(use.seconds), memory, several]


def output(view: SectionView) -> list[TextLine]:
    """What the user's program printed, and the failure in full."""
    blocks = []
    failure = view.summary.failure
    if failure is not None:
        traceback = _text(view.recording.text(failure.traceback))
        blocks.append([heading("failure", failure.type), *_text(failure.message), *traceback])
    for stream in ("stdout", "stderr"):
        body = "".join(out.text for out in view.recording.all(Output) if out.stream == stream)
        capped = [
            output_capped
            for output_capped in view.recording.all(OutputCapped)
            if output_capped.stream == stream
        ]
        note = f"kept up to {bytes_text(capped[0].cap_bytes)}" if capped else ""
        if body:
            blocks.append([heading(stream, note), *_text(body)])
    return apart(blocks) or [heading("output", "the program printed nothing")]


def _text(body: str) -> list[TextLine]:
    rows = plain_lines(body.rstrip("\n")) if body else []
    return [line("  ", row, hang=2) for row in rows]


EXAMPLES = 3
"""Maximum number of distinct reasons shown per rule; the rest are counted."""


def fusion(view: SectionView) -> list[TextLine]:
    graphs = view.summary.fusion.graphs
    if not graphs:
        return [heading("fusion", "no pairs recorded: no graph reached the scheduler")]
    labels = node_labels(view.recording)
    return apart(_fused_graph(view, graph, labels) for graph in graphs)


def fusion_line(fused: int, rejected: dict[str, int]) -> str:
    """`9 fused, 12 pairs rejected: 9 with nodes between, 3 no shared data`."""
    text = f"{number(fused)} fused"
    if not rejected:
        return f"{text}, no pairs rejected"
    reasons = ", ".join(f"{number(count)} {rule_words(rule)}" for rule, count in rejected.items())
    return f"{text}, {plural(sum(rejected.values()), 'pair')} rejected: {reasons}"


def _fused_graph(
    view: SectionView, graph: GraphFusion, labels: dict[tuple[str, str], str]
) -> list[TextLine]:
    ended = f" → {plural(graph.groups, 'group')}" if graph.groups is not None else ""
    lines = [heading(f"fusion {graph.graph}", f"{plural(graph.nodes, 'node')}{ended}")]
    rows: list[list[Cell]] = [
        [
            ("✓", "good"),
            _names(pair, labels),
            bytes_text(pair.shared_bytes) if pair.shared_bytes else "",
            (f"{pair.first} {pair.second}", "dim"),
        ]
        for pair in graph.pairs
        if pair.verdict == "fused"
    ]
    lines += table(rows, "lfrf", view.width, 2)
    passed = sum(pair.verdict == "passed" for pair in graph.pairs)
    if passed:
        text = f"{plural(passed, 'pair')} allowed, but one side had already fused with another node"
        lines.append(line(("  ·  ", "dim"), text, hang=5))
    for rule, count in graph.rejected.items():
        lines.append(line(("  ✗  ", "bad"), f"{number(count)} {rule_words(rule)}", hang=5))
        pairs = [pair for pair in graph.pairs if pair.verdict == "rejected" and pair.rule == rule]
        lines += _reasons(view, pairs, labels)
    return lines


def _reasons(
    view: SectionView, pairs: list[PairResult], labels: dict[tuple[str, str], str]
) -> list[TextLine]:
    """The engine's own reasons under one rule, most common first, each with an example pair."""
    example = {pair.reason: pair for pair in reversed(pairs)}
    reasons = Counter(pair.reason for pair in pairs)
    lines = []
    for reason, times in reasons.most_common(EXAMPLES):
        words = reason or "no reason given"
        count, such_as = (f"{times} × ", "e.g. ") if times > 1 else ("", "")
        pair = example[reason]
        names = f"  {such_as}{_names(pair, labels)}{_beside(view, pair)}"
        lines.append(line(f"       {count}{words}", (names, "dim"), hang=9))
    if len(reasons) > EXAMPLES:
        lines.append(line((f"       … {number(len(reasons) - EXAMPLES)} more reasons", "dim")))
    return lines


def _beside(view: SectionView, pair: PairResult) -> str:
    """What the other engine makes of a pair: `; tcw: in one loop nest`."""
    if view.beside is None or view.beside.settings is None:
        return ""
    together = grouped_elsewhere(view.recording, view.beside, pair)
    if together is None:
        return ""
    return f"; {view.beside.settings.engine}: {'fused' if together else 'apart too'}"


def _names(pair: PairResult, labels: dict[tuple[str, str], str]) -> str:
    first = labels.get((pair.graph, pair.first), pair.first)
    second = labels.get((pair.graph, pair.second), pair.second)
    return f"{first} + {second}"


def engines(view: SectionView) -> list[TextLine]:
    comparison = compare(view.recording)
    if comparison is None:
        return [heading("engines", "only one was recorded: use --engine both to compare two")]
    sides = " → ".join(column.engine for column in comparison.columns)
    graphs = [heading("engines", sides), *graphs_lines(comparison, view.width, 2)]
    lines = [*_stages(comparison, view.width), BLANK, *graphs]
    for graph, kernels in lineup_lines(comparison, view.names, view.width, 2).items():
        lines += [BLANK, heading(f"engines {graph}", "kernels of the same lines"), *kernels]
    if view.detail == "sources":
        for kernel in comparison.kernels:
            lines += _sources(comparison, kernel, view)
    return lines


def _stages(comparison: Comparison, width: int) -> list[TextLine]:
    note = "  CPU time: the process and the children it waited for, not build workers"
    return [
        heading("engines", "where the time of compiling went"),
        *stages_lines(comparison, width, 2),
        line((note, "dim"), hang=2),
    ]


def _sources(comparison: Comparison, line_up: LineUp, view: SectionView) -> list[TextLine]:
    """The full code that each engine generated for the same lines, one below the other."""
    lines: list[TextLine] = []
    for column, kernels in zip(comparison.columns, (line_up.first, line_up.second), strict=True):
        for kernel in kernels:
            text = column.recording.text(kernel.text)
            if not text:
                continue
            where = view.names.lines(line_up.lines)
            name = KernelNames(column.recording).name(kernel)
            words = f"{kernel.id} {name}  {WRITTEN_IN[kernel.language]}  {where}"
            lines += [BLANK, heading(column.engine, words)]
            lines += [line(f"  {row}", fixed=True) for row in text.splitlines()]
    return lines
