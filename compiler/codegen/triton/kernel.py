"""The text of one kernel."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass

from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.names import Names, anonymous, base_name, printable, title_of
from tcw.compiler.codegen.nests.online_sums import with_online_sums
from tcw.compiler.codegen.triton import tile_indices
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.parts import Part
from tcw.compiler.codegen.triton.row_steps import Passes
from tcw.compiler.codegen.triton.scopes import Scope
from tcw.compiler.codegen.triton.tile_indices import FAR, Dimension
from tcw.compiler.codegen.triton.tile_values import Values
from tcw.compiler.codegen.triton.tiles import Tile
from tcw.compiler.codegen.triton.vocabulary import FUNCTIONS, POINTERS, TYPES, identity, reducer
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Local
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import (
    Reduction,
    ScanAlong,
    Statement,
    Write,
    addresses,
    index_terms,
    symbols_in,
)
from tcw.compiler.loops.sizes import Size, multiply, product

RESERVED = (
    frozenset(keyword.kwlist)
    | frozenset(FUNCTIONS)
    | {"tl", "triton", "libdevice", "range", "x", "r", "program", "inside", "part"}
    | {"xmask", "rmask", "xrun", "rrun", "xrunmask", "rrunmask", "start", "chunk", "zero", "block"}
)
"""Names that no variable of a kernel may have."""


@dataclass(frozen=True, slots=True)
class NumberParameter:
    """A parameter in place of a number, in which kernels differ that are alike otherwise."""

    name: str
    type: str
    """`i32` or `fp32`."""
    value: int | float
    multiple: int = 1
    """A power of two, up to 16, of which every such kernel's value is a multiple."""


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """One kernel's text, and how it is launched."""

    body: str
    """From its decorator on, with `NAME` in place of its name."""
    pointers: tuple[str, ...]
    """Buffers, in the order of its parameters; some are in the workspace."""
    types: tuple[str, ...]
    """Of the pointers, as Triton writes them: `*fp32`."""
    sizes: tuple[str, ...]
    """Symbols, which follow the pointers; 64-bit integers."""
    grid: tuple[tuple[Size, int], ...]
    """A size and a block of it for each factor of the number of programs: the blocks of its rows,
    the parts of each, the blocks of its columns if programs share these too."""
    warps: int
    lines: tuple[tuple[int, tuple[str, ...]], ...]
    """(line of the body, from 1; origins that it computes)."""
    needs: frozenset[str]
    """Functions that it calls."""
    key: str
    """The text without comments and with numbered names, the types and the tile."""
    tile: Tile
    divisible: tuple[str, ...] = ()
    """Sizes that are multiples of 16."""
    numbers: tuple[NumberParameter, ...] = ()
    """Parameters after the sizes."""
    ahead: bool = False
    """It is launched while the kernel before it ends, and waits for that."""

    def programs(self) -> int | None:
        """The number of its programs; None if it depends on symbols."""
        count = 1
        for size, block in self.grid:
            if not isinstance(size, int):
                return None
            count *= -(-size // block)
        return count


class Writer:
    """Writes one kernel."""

    def __init__(
        self,
        part: Part,
        tile: Tile,
        limits: Limits,
        dtypes: Mapping[str, str],
        comments: Mapping[str, str],
        shared: frozenset[str] = frozenset(),
        streamed: frozenset[str] = frozenset(),
    ) -> None:
        """`limits` know symbols that are multiples of 16, so that a thread may load several
        elements at once from the start of such a row. `dtypes`: of each buffer, pseudo-buffers of
        the workspace included. `streamed`: buffers that are not to be kept in L2."""
        nest, facts = part.nest, Facts(part.nest)
        if tile.looped and tile.online:
            nest = with_online_sums(facts, lambda _: True, nan_in_both=True)
        self.part, self.tile, self.nest, self.facts = part, tile, nest, facts.of(nest)
        self.limits = limits
        self.dtypes, self.comments, self.shared = dtypes, comments, shared
        self.streamed = streamed
        self.names, self.root = Names(RESERVED), Scope()
        partial = [b for p in part.partials.values() for b in (p.buffer, p.counts) if b]
        self.buffers = list(dict.fromkeys((*nest.reads(), *nest.writes(), *partial)))
        self.symbols = symbols_in(nest)
        for symbol in self.symbols:
            self.names.exactly(symbol)
        self.divisible = tuple(symbol for symbol in self.symbols if symbol in limits.divisible)
        self.bases = {buffer: self.names.new(buffer) for buffer in self.buffers}
        self.x = Dimension("x", tile.x, self.nest.size(tile.x), tile.x_block)
        self.r = Dimension("r", tile.r, self.nest.size(tile.r), tile.r_block)
        self.flat = not tile.r_block
        self.far = self._is_far()
        self.values = Values(self)
        self.counts: dict[str, str] = {}
        """Sums of squared distances -> how many elements they are of."""

    def write(self) -> TritonKernel:
        form = self.part.form
        if form == "riding":
            self._riding()
        elif self.tile.looped:
            Passes(self).write()
        else:
            self._once()
        return self._kernel()

    def _kernel(self) -> TritonKernel:
        head = ", ".join((*self.bases.values(), *self.symbols))
        lines: list[tuple[str, tuple[str, ...]]] = [("@triton.jit", ())]
        lines.append((f"def NAME({head}):", ()))
        lines.append((f"    # {self._title()}", ()))
        lines += [("    " + text, origins) for text, origins in self._with_comments()]
        body = "\n".join(text for text, _ in lines) + "\n"
        grid: list[tuple[Size, int]] = [(self.x.size, self.x.block)]
        if self.part.form == "riding":
            grid = [(self.part.programs, 1)]
        elif self.part.form == "partial":
            grid.append((self.part.programs, 1))
        elif self.tile.r_block and not any(a.reduced for a in self.nest.axes):
            grid.append((self.r.size, self.r.block))
        types = tuple(POINTERS[self.dtypes[buffer]] for buffer in self.buffers)
        names = [*self.symbols, *self.names.given]
        return TritonKernel(
            body=body,
            pointers=tuple(self.buffers),
            types=types,
            sizes=tuple(self.symbols),
            grid=tuple(grid),
            warps=self.tile.warps,
            lines=tuple((n, o) for n, (_, o) in enumerate(lines, 1) if o),
            needs=frozenset(self.values.needs),
            key=f"{anonymous(body, names, '#')}\n{' '.join((*types, *self.divisible))} {self.tile}",
            tile=self.tile,
            divisible=self.divisible,
        )

    def _title(self) -> str:
        words = {"partial": ", in parts", "riding": ", with sums over rows"}
        return f"{title_of(self.nest)}{words.get(self.part.form, '')}"

    def _with_comments(self) -> list[tuple[str, tuple[str, ...]]]:
        """The lines, each with the user's line if that differs from the previous line's."""
        comments: list[tuple[str, tuple[str, ...]]] = []
        last = ""
        for text, origins in self.root.lines:
            comment = next((self.comments[o] for o in origins if o in self.comments), "")
            if comment and comment != last:
                last = comment
                text = f"{text}  # {printable(comment)[:160]}"
            comments.append((text, origins))
        return comments

    def _is_far(self) -> bool:
        """Whether an index may need more than 32 bits."""
        axes = self.nest.axes
        whole = product(axis.size for axis in axes)
        reaches: list[Size] = [whole]
        for statement in self.nest.statements:
            reaches += [multiply(term.size, term.stride) for term in index_terms(statement)]
            for address in addresses(statement):
                reaches.append(address.offset)
                reaches += [
                    multiply(axis.size, stride)
                    for axis, stride in zip(axes, address.strides, strict=True)
                ]
                for layout in address.then:
                    reaches += [layout.offset, layout.size]
                    reaches += [
                        multiply(size, stride)
                        for size, stride in zip(layout.shape, layout.strides, strict=True)
                    ]
        return any(not isinstance(reach, int) or abs(reach) > FAR // 8 for reach in reaches)

    # Positions

    def program(self) -> str:
        """The number of the program."""
        number = "tl.program_id(0)"
        if self.part.backwards and self.flat:
            number = f"(tl.num_programs(0) - 1 - {number})"
        return f"{number}.to(tl.int64)" if self.far else number

    def mask(self, dimension: Dimension) -> None:
        """Define the mask of a dimension, if it needs one: its blocks begin at multiples of a
        block's size, and below the dimension's."""
        size = dimension.size
        if isinstance(size, int) and size % dimension.block == 0:
            return
        dimension.define_mask()

    def positions(self, program: str) -> None:
        """Define the positions of the kept axes that a program takes."""
        suffix = "" if self.flat else "[:, None]"
        start = f"{program} * {self.x.block}" if self.x.block > 1 else program
        self.x.define(start, suffix, self.root)
        self.mask(self.x)

    # Kernels

    def _once(self) -> None:
        """A tile that covers whole rows, or has none."""
        if self.flat:
            self.positions(self.program())
        elif any(axis.reduced for axis in self.nest.axes):
            self.positions(self.program())
            self.r.define("", "[None, :]", self.root)
            self.mask(self.r)
        else:
            columns = f"tl.cdiv({tile_indices.text(self.r.size)}, {self.r.block})"
            self.root.add(f"program = {self.program()}")
            self.positions(f"(program // {columns})")
            self.r.define(f"program % {columns} * {self.r.block}", "[None, :]", self.root)
            self.mask(self.r)
        for statement in self.nest.statements:
            self.statement(statement, self.root)

    def statement(self, statement: Statement, scope: Scope) -> None:
        """Write a statement that needs no loop of its own."""
        if isinstance(statement, Write):
            self.values.store(statement, scope)
        elif isinstance(statement, Reduction):
            self._reduce(statement, scope)
        elif isinstance(statement, ScanAlong):
            self.scan(statement, scope)
        else:
            self.values.of(Local(statement.name, statement.dtype), scope)

    def _tile(self, text: str) -> str:
        return f"tl.broadcast_to({text}, [{self.x.block}, {self.r.block}])"

    def full(self, statement: Reduction | ScanAlong, scope: Scope) -> str:
        """A statement's elements as a whole tile."""
        expression = statement.expression
        text = self.values.of(expression, scope)
        axes = self.facts.axes(expression)
        x, r = bool(axes & set(self.tile.x)), bool(axes & set(self.tile.r))
        return text if (x or (self.x.block == 1 and r)) and r else self._tile(text)

    def masked(self, statement: Reduction | ScanAlong, scope: Scope, mask: str) -> str:
        """As `full`; what the mask leaves out changes no result."""
        text = self.full(statement, scope)
        if not mask:
            return text
        dtype = compute_dtype(statement.expression.dtype)
        return f"tl.where({mask}, {text}, {identity(statement.op, dtype)})"

    def _reduce(self, statement: Reduction, scope: Scope) -> None:
        """A reduction of a row that the tile holds whole."""
        dtype = compute_dtype(statement.expression.dtype)
        text = self.masked(statement, scope, self.r.mask)
        if statement.op in ARG:
            self.complete_arg(statement, text, self._tile(self.r.name), scope)
            return
        text = f"{self.combined(statement.op, text, dtype)}[:, None]"
        self.values.complete(statement, text, scope)

    def complete_arg(self, statement: Reduction, text: str, places: str, scope: Scope) -> None:
        """The result of an argmax or argmin, from a tile of elements and one of their places."""
        name = self.names.new(statement.name)
        function = f"{statement.op}_of"
        self.values.needs.add(function)
        pair = f"tl.reduce(({text}, {places}), 1, {function})"
        scope.add(f"_, {name} = {pair}", statement.origins)
        self.values.complete(statement, f"{name}[:, None].to(tl.int64)", scope)

    def accumulate(self, effect: Reduction, name: str, mask: str, loop: Scope) -> str:
        """Combine a tile of elements with those of the steps before it."""
        dtype = compute_dtype(effect.expression.dtype)
        self.fill(name, f"[{self.x.block}, {self.r.block}]", effect.op, dtype)
        text = self.masked(effect, loop, mask)
        if effect.op == "sum" and dtype != "bool":
            loop.add(f"{name} += {text}", effect.origins)
        else:
            function = reducer(effect.op, dtype)
            self.values.needs.add(function)
            loop.add(f"{name} = {function}({name}, {text})", effect.origins)
        return name

    def combined(self, op: str, text: str, dtype: str, dim: int = 1) -> str:
        """A tile's elements along a dimension, reduced to one."""
        if op == "sum" and dtype in ("float32", "float64", "int32", "int64"):
            return f"tl.sum({text}, {dim})"
        function = reducer(op, dtype)
        self.values.needs.add(function)
        return f"tl.reduce({text}, {dim}, {function})"

    def scan(self, statement: ScanAlong, scope: Scope, carry: str = "") -> None:
        """Write a scan along the tile; `carry` holds what the steps before it add up to."""
        dtype = compute_dtype(statement.expression.dtype)
        function = reducer(statement.op, dtype)
        self.values.needs.add(function)
        text = self.masked(statement, scope, self.r.mask)
        reverse = ", reverse=True" if statement.reverse else ""
        text = f"tl.associative_scan({text}, 1, {function}{reverse})"
        if not carry:
            self.values.complete(statement, text, scope)
            return
        name = self.names.new(statement.name)
        scope.add(f"{name} = {function}({carry}, {text})", statement.origins)
        edge = 0 if statement.reverse else self.r.block - 1
        lane = f"tl.arange(0, {self.r.block})[None, :] == {edge}"
        start = identity("sum", dtype)
        last = f"tl.where({lane}, {name}, {start})"
        if dtype == "bool":
            last = f"tl.reduce({last}, 1, or_of)"
            self.values.needs.add("or_of")
        else:
            last = self.combined("sum", last, dtype)
        scope.add(f"{carry} = {last}[:, None]")
        self.values.complete(statement, name, scope)

    def fill(self, name: str, shape: str, op: str, dtype: str) -> None:
        """Define what a reduction starts from."""
        start = identity(op, dtype)
        self.root.add(f"{name} = tl.full({shape}, {start}, {TYPES[dtype]})")

    def chunk(self, dimension: Dimension, count: int) -> None:
        """Define how much of a dimension each of `count` programs takes: whole blocks."""
        size, block = dimension.size, dimension.block
        length = f"tl.cdiv({tile_indices.text(size)}, {count * block}) * {block}"
        if isinstance(size, int):
            length = str(-(-size // (count * block)) * block)
        self.root.add(f"chunk = {length}")

    def steps(self, start: str, end: str, step: int) -> str:
        """The head of the kernel's loop."""
        if self.tile.stages == 1:
            return f"for start in range({start}, {end}, {step}):"
        return f"for start in tl.range({start}, {end}, {step}, num_stages={self.tile.stages}):"

    # Rows with sums over them

    def _riding(self) -> None:
        """Each program takes some of the rows, and keeps its sums over them in registers."""
        count, block = self.part.programs, self.x.block
        self.root.add(f"program = {self.program()}")
        self.chunk(self.x, count)
        self.r.define("", "[None, :]", self.root)
        self.mask(self.r)
        loop = self.values.begin_loop(self.tile.x)
        self.x.define("start", "[:, None]", loop)
        self.mask(self.x)  # a step begins at a multiple of the block, below the size
        riders: list[tuple[Reduction, str]] = []
        for statement in self.nest.statements:
            if isinstance(statement, Reduction) and statement.name in self.part.partials:
                name = self.names.new(f"{base_name(statement.name)}_sums")
                riders.append((statement, self.accumulate(statement, name, self.x.mask, loop)))
            else:
                self.statement(statement, loop)
        end = f"tl.minimum(program * chunk + chunk, {tile_indices.text(self.x.size)})"
        self.root.enclose(self.steps("program * chunk", end, block), loop)
        for rider, name in riders:
            dtype = compute_dtype(rider.expression.dtype)
            partial = self.part.partials[rider.name]
            text = f"{self.combined(rider.op, name, dtype, 0)}[None, :]"
            at = tile_indices.offset(self.nest, partial.address, (self.r,))
            where = f"program * {tile_indices.text(partial.width)} + {at}"
            self.values.put(partial.buffer, where, text, self.r.mask, self.root)
