"""The kernels of one compile, and the code of one: C++ tidied or raw, Triton, PTX, SASS."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Kernel, KernelLine
from tcw.viewers.kit.highlight import Language, highlight
from tcw.viewers.kit.spans import Line, Span, text, width_of
from tcw.viewers.labels import CALLED, binary_words, calls_text, line_text
from tcw.viewers.panes import profile_source
from tcw.viewers.panes.assembly import code_lines
from tcw.viewers.panes.profile_source import kernel_words
from tcw.viewers.panes.rows import BLANK, Content, Row, Rows, empty, text_row
from tcw.viewers.panes.targets import ToKernel
from tcw.viewers.panes.view import LANGUAGES, View
from tcw.viewers.summary.kernels import KernelRow
from tcw.viewers.tables.kernel_lines import kernels_lines
from tcw.viewers.words import plural

_SHORTER = (
    (re.compile(r"static_cast<int64_t>\((-?\d+)L?\)"), r"\1"),
    (re.compile(r"static_cast<int64_t>\(([^()]*)\)"), r"\1"),
    (re.compile(r"static_cast<float>\(([^()]*)\)"), r"f32(\1)"),
    (re.compile(r"static_cast<double>\(([^()]*)\)"), r"f64(\1)"),
    (re.compile(r"at::vec::Vectorized<float>"), "Vec"),
    (re.compile(r"at::vec::VectorizedN<(\w+),\s*(\d+)>"), r"Vec<\1, \2>"),
    (re.compile(r"at::vec::VecMask<float,\s*1>"), "Mask"),
    (re.compile(r"\.template cast<(\w+),\s*1>\(\)"), r".to<\1>()"),
    (re.compile(r"std::numeric_limits<float>::infinity\(\)"), "inf"),
    (re.compile(r"\[\]\(Vec& x, Vec& y\) \{ return ([^;]*); \}"), r"\1"),
    (re.compile(r"at::vec::vec_reduce_all<float, 1>\("), "reduce("),
    (re.compile(r"at::vec::"), ""),
    (re.compile(r"(?<=\d)L\b"), ""),
    (re.compile(r"int64_t x(\d+)"), r"x\1"),
    (
        re.compile(r"for\((?:int64_t )?(\w+)=(\S+); \1<(\S+); \1\+=(\S+)\)"),
        r"for (\1 = \2; \1 < \3; \1 += \4)",
    ),
)  # fmt: skip
_LEFT_OUT = re.compile(
    r"^\s*(if\(C10_LIKELY\(|.*inductor_cpu_(throw_if_)?integer_div_error|#include)"
)


@lru_cache(maxsize=64)
def tidy(body: str) -> tuple[tuple[int, str], ...]:
    """(line number, text) of Inductor's C++, tidied. Numbers count from 1 in `body`.

    Casts are shortened; braces of blocks, the always-true bounds check and the flag of a division
    by zero are left out; indentation goes by loop.
    """
    shown: list[tuple[int, int, str]] = []
    for number, line in enumerate(body.split("\n"), start=1):
        words = line.strip().removeprefix("}").removesuffix("{").strip()
        if not words or _LEFT_OUT.match(line):
            continue
        for pattern, replacement in _SHORTER:
            words = pattern.sub(replacement, words)
        shown.append((number, len(line) - len(line.lstrip()), words))
    tidied: list[tuple[int, str]] = []
    open_at: list[int] = []
    for number, indent, words in shown:
        while open_at and open_at[-1] >= indent:
            open_at.pop()
        tidied.append((number, "  " * len(open_at) + words))
        open_at.append(indent)
    return tuple(tidied)


def without_decorators(body: str) -> tuple[tuple[int, str], ...]:
    """(line number, text) of a Triton kernel from its `def` on: imports and what the launcher needs
    to know come before."""
    lines = tuple(enumerate(body.split("\n"), start=1))
    first = next((i for i, (_, line) in enumerate(lines) if line.startswith("def ")), 0)
    return lines[first:]


def content(view: View, width: int) -> Content:
    kernel = view.shown_kernel()
    name = LANGUAGES[view.language].lower()
    if kernel is None:
        return Content(name, rows=empty(width, *_nothing(view)))
    subject = view.derived.called.title(kernel)
    if not kernel.text:
        called = [] if kernel.generated else [CALLED[kernel.language]]
        facts = [*kernel_words(view, kernel), *called]
        return Content(
            name,
            subject,
            _fitting(facts, width - len(name) - len(subject) - 7),
            _call(view, kernel),
        )
    if view.language not in ("cpp", "triton"):
        return _assembly(view, kernel, subject, width)
    body = view.recording.text(kernel.text)
    shorten = tidy if kernel.language == "cpp" else without_decorators
    whole = tuple(enumerate(body.split("\n"), start=1))
    numbered = whole if view.raw else shorten(body)
    rows = _code(view, kernel, numbered)
    words = _facts(view, kernel) + (
        ["raw"] if view.raw else ["tidied"] if numbered != whole else []
    )
    row_refs = [refs.kernel(kernel.id, number) for number, _ in numbered]
    linked = {line.line for line in kernel.lines}
    start = next((number for number, _ in numbered if number in linked), 1)
    return Content(
        name,
        subject,
        _fitting(words, width - len(name) - width_of((text(subject),)) - 7),
        Rows(len(numbered), rows, row_refs),
        refs.kernel(kernel.id, start),
    )


def _fitting(words: list[str], room: int) -> Line:
    """Facts for the right of a title, the last left out first; the first always stays."""
    while len(words) > 1 and len(" · ".join(words)) > room:
        words = words[:-1]
    return (text(" · ".join(words), "dim"),)


def _facts(view: View, kernel: Kernel) -> list[str]:
    if not kernel.predicted:
        return kernel_words(view, kernel)
    binary = view.derived.binaries.get(kernel.id)
    return ["predicted"] if binary is None else [f"predicted {binary.arch}", *binary_words(binary)]


def _code(view: View, kernel: Kernel, numbered: Sequence[tuple[int, str]]) -> Callable[[int], Row]:
    origins = {line.line: line for line in kernel.lines}
    times = profile_source.nest_times(view, kernel)
    language: Language = "cpp" if kernel.language == "cpp" else "python"
    lines = highlight("\n".join(words for _, words in numbered), language)

    def make(index: int) -> Row:
        number = numbered[index][0]
        ref = refs.kernel(kernel.id, number)
        time = (times.get(number, profile_source.BLANK),) if times else ()
        return Row(
            gutter=(gutter_of(origins.get(number)), *time), body=lines[index], ref=ref, key=ref
        )

    return make


def gutter_of(line: KernelLine | None) -> Span:
    """The user line that a kernel line comes from; the last if there are several."""
    if line is None or not line.locations:
        return ("     ", "faint")
    last = max(line.locations, key=lambda place: place.line)
    return (line_text(last, line.inferred), "dim" if line.inferred else "faint")


def _call(view: View, kernel: Kernel) -> list[Row]:
    why = "its code is not in the trace"
    if not kernel.generated:
        why = f"{CALLED[kernel.language]}: no code is generated"
    rows = [
        BLANK,
        text_row("  ", kernel.name, ref=refs.kernel(kernel.id), key="call"),
        text_row((f"  {why}", "dim")),
        BLANK,
    ]
    for place in kernel.locations:
        line = view.recording.line(place.file, place.line).strip()
        ref = refs.source(place.file, place.line)
        rows.append(text_row(line, gutter=((line_text(place), "faint"),), ref=ref, key=ref))
    if kernel.no_line:
        rows.append(text_row("  ", (kernel.no_line, "dim")))
    return rows


def _assembly(view: View, kernel: Kernel, subject: str, width: int) -> Content:
    binary = view.derived.binaries.get(kernel.id)
    name = LANGUAGES[view.language]
    if binary is None:
        why = f"{kernel.id} was not compiled to {name}"
        return Content(name.lower(), subject, rows=empty(width, why))
    key = getattr(binary, view.language)
    if not key:
        why = binary.error or f"the trace has no {name} of {kernel.id}"
        return Content(name.lower(), subject, rows=empty(width, why))
    facts = [f"predicted {binary.arch}" if binary.predicted else binary.arch]
    facts += binary_words(binary)
    whole = code_lines(view.recording.text(key), view.language, kernel.name)
    shown = whole if view.raw else tuple(line for line in whole if not line.only_places)
    if view.raw:
        facts.append("raw")
    right = _fitting(facts, width - len(name) - width_of((text(subject),)) - 7)
    source = {line.line: line for line in kernel.lines}
    raw = view.recording.text(key).split("\n") if view.raw else []
    row_refs = [refs.kernel(kernel.id, line.origin) if line.origin else "" for line in shown]

    def make(index: int) -> Row:
        line = shown[index]
        words = (raw[line.number - 1] if raw else line.text).expandtabs(4)
        quiet = words.strip().startswith((".", "//", "!"))
        return text_row(
            (words, "faint" if quiet else "text"),
            gutter=(gutter_of(source.get(line.origin)),),
            ref=row_refs[index],
            key=f"asm:{line.number}",
        )

    start = next((f"asm:{line.number}" for line in shown if line.origin in source), "")
    return Content(name.lower(), subject, right, Rows(len(shown), make, row_refs), start)


def _nothing(view: View) -> tuple[str, str]:
    kernels = view.recording.kernels_of.get(view.compile_id, [])
    if not kernels:
        name = view.compile_id or "this compile"
        return f"no kernel was generated for {name}", view.not_reached("codegen")
    if view.language == "cpp":
        others = "" if view.in_page else "( ) shows the other languages"
        return f"no C++ in {plural(len(kernels), 'kernel')}", others
    return "no Triton was recorded", "--device cuda --arch sm_90 predicts it without a GPU"


WIDE = 56
"""From this width on the title has room for whole words."""


def kernel_list(view: View, width: int) -> Content:
    kernels = view.recording.kernels_of.get(view.compile_id, [])
    if not kernels:
        why = f"no kernel of {view.compile_id or 'this recording'} was recorded"
        next_step = view.not_reached("codegen")
        return Content("kernels", view.compile_id, rows=empty(width, why, next_step))
    wanted = {kernel.id for kernel in kernels}
    listed = [row for row in view.summary.kernels.rows if row.kernel.id in wanted]
    listed.sort(key=lambda row: row.kernel.predicted != view.for_gpu)
    rows: list[Row] = []
    real = [row.kernel for row in listed if not row.kernel.predicted]
    halves = len({kernel.graph for kernel in real}) > 1
    first = [row.kernel for row in listed if row.kernel.predicted == listed[0].kernel.predicted]
    title = ""
    for row, body in zip(listed, _lines(view, listed, width), strict=True):
        above = _title(row.kernel, halves, first[0].predicted)
        if above != title:
            title = above
            rows += [*([BLANK] if rows else []), text_row((f" {above}", "dim"))]
        rows.append(_row(row.kernel, body))
    calls = [kernel.language for kernel in first if not kernel.generated]
    words = f"{len(first) - len(calls)} generated"
    if calls:
        words += f", {calls_text(calls) if width >= WIDE else plural(len(calls), 'call')}"
    start = str(ToKernel(view.kernel)) if view.kernel else ""
    right: Line = ((words, "dim"),)
    return Content("kernels", view.compile_id, right, rows, start, tracks=bool(start))


def _lines(view: View, listed: Sequence[KernelRow], width: int) -> list[Line]:
    profile = view.derived.profile
    lines = kernels_lines(
        listed,
        view.derived.names,
        width - 1,
        1,
        main=view.derived.main_file,
        seconds=profile.kernel_seconds if profile is not None else None,
        in_pane=True,
    )
    return [line.spans for line in lines]


def _title(kernel: Kernel, halves: bool, second: bool) -> str:
    """The heading above a kernel; `second`: built kernels follow predicted ones."""
    if kernel.predicted:
        return "predicted for a GPU that this machine lacks"
    half = ("backward" if "backward" in kernel.graph else "forward") if halves else ""
    return " ".join(filter(None, (half, "built for the CPU"))) if second else half


def _row(kernel: Kernel, body: Line) -> Row:
    return Row(
        body=body,
        ref=refs.kernel(kernel.id),
        at=ToKernel(kernel.id),
        copies=kernel.name,
    )
