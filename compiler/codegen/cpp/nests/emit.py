"""Emits a nest as a C++ function: its phases, each a loop over units that threads share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tcw.compiler.codegen.choices import Chooser
from tcw.compiler.codegen.cpp.nests.code import RESERVED, Code
from tcw.compiler.codegen.cpp.nests.comments import Comments
from tcw.compiler.codegen.cpp.nests.moved import as_bits
from tcw.compiler.codegen.cpp.nests.parallel import ARGUMENTS, PARAMETERS, need_parallel, need_turns
from tcw.compiler.codegen.cpp.nests.passes import Passes
from tcw.compiler.codegen.cpp.nests.phases import SMALL, NestPhase, NestPhases, weight_of
from tcw.compiler.codegen.cpp.nests.riders import TURN_WORDS
from tcw.compiler.codegen.cpp.nests.row_loops import Loops
from tcw.compiler.codegen.cpp.nests.short_positions import with_short_positions
from tcw.compiler.codegen.cpp.nests.units import Units
from tcw.compiler.codegen.cpp.nests.vector_values import Base
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.nests.names import Names, anonymous, base_name, title_of
from tcw.compiler.codegen.nests.rounding import without_round_trips
from tcw.compiler.codegen.unit import Function, PhaseLines
from tcw.compiler.loops.nest import Nest, symbols_in
from tcw.compiler.loops.sizes import Size, c_expression, product, symbols_of


@dataclass(slots=True)
class _Function:
    """State shared by all phases of a function."""

    pointers: list[str]
    dtypes: Mapping[str, str]
    symbols: list[str]
    vocabulary: Vocabulary
    lines: Mapping[str, str]
    shared: frozenset[str]
    phases: NestPhases
    parts: list[Code] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    """Of each part: which line of the function calls it, from 0."""
    keys: list[str] = field(default_factory=list)


def emit(
    nest: Nest,
    dtypes: Mapping[str, str],
    vocabulary: Vocabulary,
    comments: Mapping[str, str] | None = None,
    shared: Iterable[str] = (),
    chooser: Chooser | None = None,
) -> Function:
    """The function of a nest.

    `dtypes`: of each buffer. `comments`: origin -> the user's line (`model.py:12  x = f(x)`).
    `shared`: buffers that may occupy the same memory as another buffer of the nest, element for
    element (a result that reuses an argument's memory). `chooser` may override choices.
    """
    phases = NestPhases(vocabulary.isa, frozenset(shared), chooser=chooser)
    nest, dtypes = as_bits(without_round_trips(nest), dtypes)
    phases.add(with_short_positions(nest))
    function = _Function(
        list(dict.fromkeys((*nest.reads(), *nest.writes()))),
        dtypes,
        symbols_in(nest),
        vocabulary,
        comments or {},
        frozenset(shared),
        phases,
    )
    main = Code()
    only = len(phases.order) == 1
    for number, phase in enumerate(phases.order):
        _phase(function, phase, number, main, only)
    whole = Code()
    starts: list[int] = []
    for part in function.parts:
        starts.append(len(whole.lines))
        whole.extend(part)
    body = len(whole.lines) + 1
    whole.enclose(f"static void @({PARAMETERS})", main)
    return Function(
        body="\n".join(text for text, _ in whole.lines) + "\n",
        pointers=tuple(function.pointers),
        sizes=tuple(function.symbols),
        workspace_bytes=phases.workspace.bytes,
        lines=tuple(
            (place, origins) for place, (_, origins) in enumerate(whole.lines, 1) if origins
        ),
        parts=tuple(
            PhaseLines(call=body + call + 1, loop=start + (part.loops[0] if part.loops else 1) + 1)
            for part, call, start in zip(function.parts, function.calls, starts, strict=True)
        ),
        loops=tuple(place + 1 for place in whole.loops),
        key="\n".join(function.keys),
    )


def _phase(function: _Function, phase: NestPhase, number: int, main: Code, only: bool) -> None:
    names = Names(RESERVED)
    for symbol in function.symbols:
        names.exactly(symbol)
    bases = _bases(function, phase, names)
    phase.riders = {
        name: replace(
            rider,
            array=replace(
                rider.array,
                base=replace(rider.array.base, name=names.new(f"{base_name(name)}_sums")),
            ),
        )
        for name, rider in phase.riders.items()
    }
    units = Units(phase.facts, phase.schedule, names)
    units.grouped = phase.blocks
    plan = phase.schedule
    passes = Passes(
        phase.facts,
        plan.row(),
        plan.outer,
        function.shared,
        prologue=plan.chunk is None and plan.tile is None,
        lane=plan.lane if plan.tile is None else None,
        choose=phase.choose,
    )
    loops = Loops(
        phase.facts,
        phase.schedule,
        passes,
        names,
        bases,
        function.vocabulary,
        Comments(phase.facts, function.lines),
        phase.riders,
        phase.turn,
        phase.choose,
    )
    count: int | str = units.count() if phase.blocks is None else phase.blocks
    serial = (phase.small and phase.turn is None) or count == 1
    begin, end = ("0", str(count)) if serial else ("begin", "end")
    rows = loops.rows(units, begin, end)
    body = Code()
    _declare(function, bases, body, "\n".join(text for text, _ in rows.lines))
    body.extend(rows)
    header = "// " + title_of(phase.nest).replace("\\", "/")
    if serial and only:
        main.add(header)
        main.extend(body)
    else:
        part = Code()
        name = f"@_{number}"
        part.add(header)
        in_turn = phase.turn is not None
        step = ", long threads" if in_turn else ""
        part.enclose(f"static void {name}({PARAMETERS}, long begin, long end{step})", body)
        part.add("")
        function.parts.append(part)
        if serial:
            call = f"{name}({ARGUMENTS}, 0, {count});"
        else:
            large = _large(function, phase, main)
            if phase.turn is not None:
                need_turns(function.vocabulary)
                turns = f"(long*)(workspace + {c_expression(phase.turn)})"
                if phase.totals == 1:
                    main.add(f"*{turns} = 0;")
                else:
                    loop = f"for (long i = 0; i < {phase.totals}; i++)"
                    main.add(f"{loop} ({turns})[i * {TURN_WORDS}] = i;")
                call = f"parallel_in_turn({name}, {ARGUMENTS}, {count}, {large});"
            else:
                need_parallel(function.vocabulary)
                call = f"parallel({name}, {ARGUMENTS}, {count}, {large});"
        function.calls.append(len(main.lines))
        main.add(call)
    text = "\n".join(text for text, _ in body.lines)
    large_or_not = "" if phase.large is None else f" {phase.large}"
    function.keys.append(anonymous(f"{text}\n{count} {serial}{large_or_not}", names.given))


def _large(function: _Function, phase: NestPhase, main: Code) -> str:
    """Whether the work justifies more than one thread, as a C expression."""
    work: Size = product(axis.size for axis in phase.nest.axes)
    if isinstance(work, int):
        return "false" if phase.small else "true"
    for place, symbol in enumerate(function.symbols):
        line = f"const long {symbol} = sizes[{place}];"
        if all(text != line for text, _ in main.lines):
            main.add(line)
    if phase.large is not None:
        return "true" if phase.large else "false"
    return f"{c_expression(work)} >= {max(SMALL // weight_of(phase.facts), 1)}"


def _bases(function: _Function, phase: NestPhase, names: Names) -> dict[str, Base]:
    bases: dict[str, Base] = {}
    writes = phase.nest.writes()
    for buffer in dict.fromkeys((*phase.nest.reads(), *writes)):
        if buffer in function.phases.workspace.places:
            dtype = function.phases.workspace.places[buffer][0]
        else:
            dtype = function.dtypes[buffer]
        bases[buffer] = Base(names.new(buffer), dtype, writable=buffer in writes)
    return bases


def _declare(function: _Function, bases: dict[str, Base], code: Code, rows: str) -> None:
    """Declare the sizes and pointers that one phase uses. `rows` is the text of its loops."""
    offsets = [
        function.phases.workspace.places[b][1]
        for b in bases
        if b in function.phases.workspace.places
    ]
    used = {symbol for offset in offsets for symbol in symbols_of(offset)}
    used |= set(re.findall(r"\w+", rows))
    for place, symbol in enumerate(function.symbols):
        if symbol in used:
            code.add(f"const long {symbol} = sizes[{place}];")
    scalar = function.vocabulary.lanes(1)
    for buffer, base in bases.items():
        const = "" if base.writable else "const "
        kind = f"{const}{scalar.storage(base.dtype)}*"
        restrict = "" if buffer in function.shared else " __restrict"
        if buffer in function.phases.workspace.places:
            _, offset = function.phases.workspace.places[buffer]
            start = f"(workspace + {c_expression(offset)})"
        else:
            start = f"pointers[{function.pointers.index(buffer)}]"
        code.add(f"{kind}{restrict} {base.name} = ({kind}){start};")
