"""The tile of each kernel as a decision, with the numbers of the model that chose it."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.codegen.choices import NestChooser
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.parts import Part
from tcw.compiler.codegen.triton.tiles import WARP, Tile, bytes_a_step
from tcw.compiler.trace.plurals import plural

KIND = "tile"
MEANS = "positions x elements of a row that a program holds at a time, by how many warps"


def tile(
    choose: NestChooser,
    part: Part,
    limits: Limits,
    default: Tile,
    others: Sequence[Tile],
    microseconds: dict[str, float],
    number: int,
) -> Tile:
    """The tile of a nest's kernel, of which it is the `number`th. `microseconds`: measured ones."""
    tiles = {one.words: one for one in (default, *others)}
    numbers = numbers_of(part, limits, default)
    numbers |= {f"us_{words}": took for words, took in microseconds.items()}
    flight, wanted = numbers["bytes_in_flight"], numbers["most_bytes_in_flight"]
    reason = (
        f"{plural(default.a_thread, 'element')} a thread, "
        f"{plural(int(numbers['programs']), 'program')}, "
        f"{flight} of {wanted} bytes in flight per processor"
    )
    if microseconds:
        best = microseconds[default.words]
        reason = f"{best:g} µs, the fastest of {len(microseconds)} that were measured; {reason}"
    choice = choose.choose(
        KIND,
        default.words,
        list(tiles),
        "measured" if microseconds else "bytes in flight",
        reason,
        numbers=numbers,
        means=MEANS,
        about="" if not number else f"{choose.names[0]}+{part.form}{number}",
    )
    return tiles[choice]


def numbers_of(part: Part, limits: Limits, tile: Tile) -> dict[str, int | float]:
    """What the model weighs."""
    positions = limits.number(part.nest.size(tile.x))
    programs = -(-positions // tile.x_block)
    if part.form == "partial":
        programs *= part.programs
    elif part.form == "riding":
        programs = part.programs
    elif tile.r_block and not any(axis.reduced for axis in part.nest.axes):
        programs *= -(-limits.number(part.nest.size(tile.r)) // tile.r_block)
    machine = limits.architecture
    threads = WARP * tile.warps
    step = bytes_a_step(part, tile) * tile.stages
    registers = min(max(2 * tile.a_thread + 24, 32), 255)
    fits = min(
        machine.threads_per_processor // threads,
        machine.registers_per_processor // (registers * threads),
    )
    resident = max(min(fits, -(-programs // limits.processors)), 1)
    return {
        "programs": programs,
        "threads": threads,
        "elements_a_thread": tile.a_thread,
        "registers_at_least": registers,
        "programs_a_processor": resident,
        "bytes_in_flight": resident * step,
        "most_bytes_in_flight": limits.in_flight,
    }
