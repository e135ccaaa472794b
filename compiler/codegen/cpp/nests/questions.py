"""The choices of a nest as decisions: the alternatives, and what forbids them.

Nothing here decides. Each function receives what the schedule, the phases or the passes have
decided, and returns that decision or an override. All choices give the same results, except for the
order in which floating-point numbers are summed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tcw.compiler.codegen.choices import NestChooser
from tcw.compiler.codegen.cpp.isa import Isa
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Reduction, ScanAlong, Statement, Write
from tcw.compiler.loops.printer.print_addresses import axis_name
from tcw.compiler.loops.sizes import Size
from tcw.compiler.trace.byte_counts import bytes_text
from tcw.compiler.trace.plurals import plural

WIDTHS = (1, 2, 4, 8, 16)
BLOCKS = (64, 256, 1024, 4096, 16384)
PARTIALS = (1, 8, 64)
STEPS = (1, 2, 4)

NONE = "none"
ROW = "row"
KEEP, AGAIN, RELOAD, BEFORE = "keep", "again", "reload", "before"
ROWS, SPREAD = "rows", "blocks"
RIDE, ALONE = "ride", "alone"
PARALLEL, ONE = "parallel", "one"


def lane_axis(choose: NestChooser, facts: Facts, default: int, costs: Mapping[int, float]) -> int:
    """The axis on the lanes. `costs` holds the instructions for each legal axis."""
    axes = [axis for axis, one in enumerate(facts.nest.axes) if one.size != 1]
    words = ", ".join(f"{axis_name(a)} {facts.nest.axes[a].size}" for a in axes)
    choice = choose.choose(
        "lanes",
        axis_name(default),
        [axis_name(axis) for axis in axes],
        "cheapest axis",
        f"of {words}: {axis_name(default)} takes {costs[default]:.1f} instructions for 16 elements",
        numbers={f"{axis_name(axis)}_cost": round(cost, 1) for axis, cost in costs.items()},
        forbidden={
            axis_name(axis): ("order", f"positions along {axis_name(axis)} must run in order")
            for axis in axes
            if axis not in costs
        },
        means="elements side by side along this axis are one vector",
    )
    return next(axis for axis in axes if axis_name(axis) == choice)


def vector(
    choose: NestChooser,
    isa: Isa,
    whole: int,
    itemsizes: Sequence[int],
    cost: float,
    scalar: float | None,
) -> int:
    """The number of elements per vector; 1 for scalar code, the default if it costs less.

    `whole` elements fill a vector. `cost` and `scalar`: instructions for 16 elements with vectors
    and without; None if scalar code was not considered.
    """
    widest = max((4, *itemsizes))
    widths = [width for width in WIDTHS if width * 4 <= isa.vector_bytes]
    numbers: dict[str, float] = {"vector_bytes": isa.vector_bytes, "element_bytes": widest}
    default, rule = whole, "whole vectors"
    reason = f"elements of {widest} bytes, vectors of {isa.vector_bytes} bytes ({isa.name})"
    if scalar is not None:
        numbers |= {"vector_cost": round(cost, 1), "scalar_cost": round(scalar, 1)}
        if scalar < cost:
            default, rule = 1, "scattered"
            reason = (
                f"{scalar:.1f} instructions for 16 elements one by one, {cost:.1f} with vectors,"
                " whose elements lie apart"
            )
    choice = choose.choose(
        "vector",
        str(default),
        [str(width) for width in widths],
        rule,
        reason,
        numbers=numbers,
        forbidden={
            str(width): (
                "registers",
                f"{width} elements of {widest} bytes take {width * widest} bytes,"
                f" a vector has {isa.vector_bytes}",
            )
            for width in widths
            if width > whole
        },
        means="elements that one instruction computes",
    )
    return int(choice)


def tile(
    choose: NestChooser,
    default: int | None,
    legal: Collection[int],
    lanes: int,
    what: str = "reads",
) -> int | None:
    """The axis along which tiles are loaded (or stored) and transposed. `what`: reads or writes."""
    names = {axis_name(axis): axis for axis in sorted(set(legal))}
    choice = choose.choose(
        "tile",
        NONE if default is None else axis_name(default),
        [NONE, *names],
        f"transposed {what}",
        f"{what} with a stride on the lanes, in tiles of {lanes} x {lanes}",
        numbers={"tile": lanes},
        means=f"{what} along an axis other than the lanes: square tiles transposed in registers, or"
        " one element per lane",
    )
    return names.get(choice)


def block(choose: NestChooser, default: Size | None, size: Size) -> Size | None:
    """How much of the lane axis a unit of work takes; None for all of it."""
    widths = [width for width in BLOCKS if not isinstance(size, int) or width < size]
    if isinstance(default, int) and default not in widths:
        widths = sorted([*widths, default])
    choice = choose.choose(
        "block",
        ROW if default is None else str(default),
        [*map(str, widths), ROW],
        "threads and cache",
        f"an axis of {size} elements",
        means="elements that a thread takes at once",
    )
    return None if choice == ROW else default if choice == str(default) else int(choice)


def units(choose: NestChooser, default: int, sizes: Sequence[Size]) -> int:
    """The number of outer axes that threads share."""
    words = " x ".join(map(str, sizes))
    choice = choose.choose(
        "units",
        str(default),
        [str(count) for count in range(len(sizes) + 1)],
        "enough for all threads",
        f"outer axes {words}",
        means="outermost axes whose positions threads share; the others are loops of one thread",
    )
    return int(choice)


def threads(choose: NestChooser, small: bool, work: int | None, least: int) -> bool:
    """Whether one thread runs the nest."""
    known = "symbolic sizes" if work is None else plural(work, "simple instruction")
    choice = choose.choose(
        "threads",
        ONE if small else PARALLEL,
        [ONE, PARALLEL],
        "enough work",
        f"{known}; several threads pay off from {least:,}",
        numbers={} if work is None else {"instructions": work},
        means="whether threads share the nest's units",
    )
    return choice == ONE


def spread(choose: NestChooser, default: bool, scans: bool) -> bool:
    """Whether the rows of reductions are split into blocks."""
    choice = choose.choose(
        "reduction",
        SPREAD if default else ROWS,
        [ROWS, SPREAD],
        "long reductions",
        "few results of many elements" if default else "enough rows for all threads",
        forbidden={SPREAD: ("scan", "a scan needs its whole row")} if scans and not default else {},
        means="one thread reduces a row, or blocks of it are reduced and then combined",
    )
    return choice == SPREAD


def rides(choose: NestChooser, name: str, bytes_: int, alone: bool, rows: bool) -> bool:
    """Whether a reduction over axes other than the rows' runs in a separate loop."""
    choice = choose.choose(
        "rider",
        ALONE if alone else RIDE,
        [RIDE, ALONE],
        "room for partial results",
        f"its partial results take {bytes_text(bytes_)}",
        numbers={"partial_bytes": bytes_},
        forbidden={ALONE: ("rows", f"{name} reduces the results of whole rows")} if rows else {},
        means="it accumulates during the passes over the rows, or in a separate pass",
        about=name,
    )
    return choice == ALONE


def partials(choose: NestChooser, default: int) -> int:
    """The maximum number of partial results of a riding reduction."""
    counts = sorted({*PARTIALS, default})
    choice = choose.choose(
        "partials",
        str(default),
        [str(count) for count in counts],
        "one thread, few additions" if default == 1 else "enough for threads and for accuracy",
        "it depends only on the sizes, so that any number of threads gives the same bits",
        means="blocks of units that are reduced separately before they are added to the result",
    )
    return int(choice)


def kept(
    choose: NestChooser, name: str, default: str, legal: Sequence[str], weight: int, passes: int
) -> str:
    """What to do with a value that several passes over a row need."""
    return choose.choose(
        "row",
        default,
        [one for one in (AGAIN, KEEP, RELOAD, BEFORE) if one == default or one in legal],
        "cost of a value",
        f"{passes} passes need it; it costs {plural(weight, 'simple instruction')}",
        numbers={"instructions": weight, "passes": passes},
        means="computed again in each pass, kept in a buffer as long as the row, read back from "
        "where it is stored, or computed once before all rows",
        about=name,
    )


def steps(
    choose: NestChooser, facts: Facts, effects: Sequence[Statement], lane: int, default: int
) -> int:
    """The number of vectors per step of a pass along the lanes, named after its first effect."""
    illegal = ""
    for effect in effects:
        if isinstance(effect, ScanAlong) and effect.axis == lane:
            illegal = f"{effect.name} carries a value from each vector to the next"
        elif isinstance(effect, Reduction) and effect.op in ARG:
            illegal = f"{effect.name} keeps the first of equal elements"
    if not effects:
        return default
    first = effects[0]
    weight = sum(facts.expression_weight(effect.expression) for effect in effects)
    sums = sum(isinstance(effect, Reduction) for effect in effects)
    choice = choose.choose(
        "unroll",
        str(default),
        [str(count) for count in STEPS],
        "independent chains",
        f"{plural(weight, 'simple instruction')} per vector, {plural(sums, 'reduction')}",
        numbers={"instructions": weight, "reductions": sums},
        forbidden={str(count): ("order", illegal) for count in STEPS if count > 1}
        if illegal
        else {},
        means="vectors per step, each with its own accumulators",
        about=first.buffer if isinstance(first, Write) else first.name,
    )
    return int(choice)
