"""Expressions as C++."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.codegen.cpp.nests.addresses import (
    chain_lines,
    checked_index,
    product_text,
    read_by_places,
    step_text,
)
from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.quick import quick_functions
from tcw.compiler.codegen.cpp.nests.registers import narrows
from tcw.compiler.codegen.cpp.nests.windows import read_window
from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.names import Names, base_name
from tcw.compiler.codegen.nests.nest_values import NestValues
from tcw.compiler.loops.dtypes import REDUCED, compute_dtype
from tcw.compiler.loops.expressions import (
    Address,
    Const,
    Expression,
    IndexTerm,
    Local,
    Op,
    Position,
    Read,
    ReadIndexed,
    SizeOf,
)
from tcw.compiler.loops.nest import Write
from tcw.compiler.loops.sizes import Size, c_expression, multiply


@dataclass(frozen=True, slots=True)
class Base:
    """Memory that the code points into."""

    name: str
    """The name of a pointer in the root scope."""
    dtype: str
    relative: bool = False
    """Its index along the lane axis counts from the unit's start (a row buffer)."""
    writable: bool = False
    padded: bool = False
    """The memory along the lane axis is padded to whole vectors."""


class Values(NestValues[Scope]):
    """Turns expressions into text, adding the required code to the scopes."""

    def __init__(
        self, facts: Facts, names: Names, bases: dict[str, Base], lane: int | None
    ) -> None:
        super().__init__(facts)
        self.names = names
        self.bases = bases
        self.lane = lane
        self.arrays: dict[str, tuple[Scope, Base, Address]] = {}
        """Values kept in row buffers, with the scope in which they are filled."""
        self.memory: dict[str, Read] = {}
        """Values that are read back from where they were stored."""
        self.blocks: dict[Read, tuple[Base, Address]] = {}
        """Reads whose elements are transposed in an array."""
        self.written: dict[Write, tuple[Base, Address]] = {}
        """Writes whose elements lie in an array first, and are transposed from there."""
        self._quick = quick_functions(facts)
        self._stable: dict[object, str] = {}

    def keep(self, name: str, scope: Scope, base: Base, address: Address) -> None:
        """Define a value as a row buffer, which the scope has filled."""
        self.arrays[name] = (scope, base, address)
        self.defined.pop(name, None)
        self._depths.clear()

    def reload(self, name: str, read: Read) -> None:
        """Define a value as readable from memory from now on."""
        self.memory[name] = read
        self._depths.clear()

    def name(self, key: object, wanted: str) -> str:
        """A name that is the same for the same key in every scope."""
        if key not in self._stable:
            self._stable[key] = self.names.new(wanted)
        return self._stable[key]

    def of(self, expression: Expression, scope: Scope) -> str:
        """The text of a value as a register of the scope."""
        if isinstance(expression, Const):
            return scope.lanes.constant(expression.number, expression.dtype)
        text = super().of(expression, scope)
        if scope.is_lane and not self.home(expression, scope).is_lane:
            return scope.lanes.broadcast(text, compute_dtype(expression.dtype))
        return text

    def _held(self, name: str) -> int | None:
        if name not in self.defined and name in self.arrays:
            return self.arrays[name][0].depth
        return 0 if name not in self.defined and name in self.memory else super()._held(name)

    def _compute(self, expression: Expression, scope: Scope, *, away: bool) -> str:
        dtype = compute_dtype(expression.dtype)
        origins: tuple[str, ...] = ()
        key: object = expression
        wanted, text = "", ""
        if isinstance(expression, Local):
            if expression.name in self.defined:
                return self.defined[expression.name][1]
            text, origins = self._local(expression, scope)
            wanted = expression.name
            key = expression.name
        elif isinstance(expression, SizeOf):
            return c_expression(expression.size)
        elif isinstance(expression, Op) and self._loads_narrow(expression, scope):
            text = self._load_narrow(expression, scope)
            wanted = f"{base_name(expression.args[0].buffer)}_value"  # type: ignore[union-attr]
        elif isinstance(expression, Op):
            args = [self.of(argument, scope) for argument in expression.args]
            dtypes = [argument.dtype for argument in expression.args]
            op = expression.name
            if scope.lanes.count > 1:
                op = self._quick.get(expression, op)
            text = scope.lanes.apply(op, args, dtypes, expression.dtype, scope.count)
            wanted = expression.name
        elif isinstance(expression, (Read, ReadIndexed)):
            text = self._read(expression, scope)
            wanted = f"{base_name(expression.buffer)}_value"
        elif isinstance(expression, Position):
            text = self._position(expression.address, scope, expression.dtype)
            wanted = "position"
        else:
            raise AssertionError(f"{type(expression).__name__} in a nest")
        once = self.facts.uses[expression] <= 1 and not away
        if once and not isinstance(expression, (Local, ReadIndexed)):
            return text
        name = self.name(key, wanted)
        scope.code.add(f"const {scope.lanes.type(dtype)} {name} = {text};", origins)
        return name

    def _local(self, local: Local, scope: Scope) -> tuple[str, tuple[str, ...]]:
        """The value of another statement: kept, stored, or computed here."""
        if local.name in self.arrays:
            _, base, address = self.arrays[local.name]
            return self.load(base, address, scope), ()
        if local.name in self.memory:
            return self._read(self.memory[local.name], scope), ()
        statement = self._statement(local.name, scope)
        text = self.of(statement.expression, scope)
        text = scope.lanes.held_as(text, statement.expression.dtype, statement.dtype)
        return text, statement.origins

    # Memory

    def _loads_narrow(self, expression: Op, scope: Scope) -> bool:
        """Whether an operator is a conversion of elements too wide for the vectors of the nest."""
        if not scope.is_lane or self.lane is None or not narrows(expression, self.lane):
            return False
        return not scope.lanes.holds(expression.args[0].dtype)

    def _load_narrow(self, expression: Op, scope: Scope) -> str:
        (read,) = expression.args
        assert isinstance(read, Read)
        base = self.bases[read.buffer]
        step = self.lane_step(read.address, scope)
        text = scope.lanes.load_converted(
            base.dtype,
            compute_dtype(expression.dtype),
            self.pointer(base, read.address, scope),
            None if step == 1 else step_text(step),
            None if step == 1 and base.padded else scope.count,
        )
        if expression.dtype not in REDUCED:
            return text
        return scope.lanes.apply("convert", (text,), ("float32",), expression.dtype)

    def _read(self, read: Read | ReadIndexed, scope: Scope) -> str:
        if isinstance(read, ReadIndexed):
            return self._read_indexed(read, scope)
        if read in self.blocks:
            return self.load(*self.blocks[read], scope)
        base = self.bases[read.buffer]
        if not read.address.then:
            return self.load(base, read.address, scope)
        at = self._position(read.address, scope)
        if scope.is_lane:
            return scope.lanes.gather(base.dtype, base.name, at, scope.count)
        return scope.lanes.load(base.dtype, f"{base.name} + {at}")

    def load(self, base: Base, address: Address, scope: Scope, more: str = "") -> str:
        """Elements at an address without a chain; `more` is added to the pointer."""
        pointer = self.pointer(base, address, scope) + more
        if not scope.is_lane:
            return scope.lanes.load(base.dtype, pointer)
        step = self.lane_step(address, scope)
        if step == 0:
            scalar = scope.lanes.vocabulary.lanes(1).load(base.dtype, pointer)
            return scope.lanes.broadcast(scalar, compute_dtype(base.dtype))
        if step == 1 and base.padded:
            return scope.lanes.load(base.dtype, pointer)
        return self.near(base.dtype, pointer, step, scope)

    def near(self, dtype: str, pointer: str, step: Size, scope: Scope) -> str:
        """Elements `step` apart, from the pointer on."""
        if step != 1:
            return scope.lanes.load_strided(dtype, pointer, step_text(step), scope.count)
        if scope.count is None:
            return scope.lanes.load(dtype, pointer)
        return scope.lanes.load_partial(dtype, pointer, scope.count)

    def store(self, base: Base, address: Address, value: str, scope: Scope, more: str = "") -> str:
        """Statement: the inverse of `load`."""
        pointer = self.pointer(base, address, scope) + more
        if not scope.is_lane:
            return scope.lanes.store(base.dtype, pointer, value)
        step = self.lane_step(address, scope)
        if step != 1:
            return scope.lanes.store_strided(
                base.dtype, pointer, value, step_text(step), scope.count
            )
        if scope.count is None or base.padded:
            return scope.lanes.store(base.dtype, pointer, value)
        return scope.lanes.store_partial(base.dtype, pointer, value, scope.count)

    def lane_step(self, address: Address, scope: Scope) -> Size:
        """The distance between the elements of neighbouring lanes."""
        assert self.lane is not None
        return multiply(address.strides[self.lane], scope.sign(self.lane))

    def pointer(self, base: Base, address: Address, scope: Scope) -> str:
        """A pointer to the element; in a lane scope, to that of the first lane."""
        key = ("pointer", base.name, address.strides, address.offset)
        known = scope.memo.get(key)
        if known is not None:
            return known
        if scope.parent is None:
            text = base.name
            if address.offset != 0:
                text += f" + {c_expression(address.offset)}"
        else:
            text = self.pointer(base, address, scope.parent)
            added = ""
            for axis, (index, sign) in scope.own.items():
                if base.relative and axis == scope.partial and not scope.flipped:
                    continue
                part = product_text(index, address.strides[axis])
                if part:
                    added += f" {'-' if sign < 0 else '+'} {part}"
            if added:
                text += added
                if not scope.is_lane:
                    name = self.name((key, scope.depth), f"{base.name}_{_loop(scope)}")
                    element = scope.lanes.storage(base.dtype)
                    const = "" if base.writable else "const "
                    scope.code.add(f"{const}{element}* {name} = {text};")
                    text = name
        scope.memo[key] = text
        return text

    # Positions and indices

    def _position(self, address: Address, scope: Scope, dtype: str = "int64") -> str:
        """The address as a number of this dtype; in a lane scope, a register of them."""
        start = self.start(address, scope)
        step: Size = self.lane_step(address, scope) if scope.is_lane else 0
        if address.then:
            return self._chain(address, start, step, scope)
        if not scope.is_lane:
            return f"({start})"
        if step == 1:
            return scope.lanes.iota(start, dtype)
        if dtype != "int64":
            start = f"({SCALARS[dtype]})({start})"
        return f"({scope.lanes.iota('0', dtype)} * {step_text(step)} + ({start}))"

    def start(self, address: Address, scope: Scope) -> str:
        """The address before its chain; in a lane scope, that of the first lane."""
        parts = [c_expression(address.offset)] if address.offset != 0 else []
        for axis, stride in enumerate(address.strides):
            if stride != 0:
                part = product_text(f"({scope.index(axis)})", stride)
                if part:
                    parts.append(part)
        return " + ".join(parts) or "0"

    def _chain(self, address: Address, start: str, step: Size, scope: Scope) -> str:
        """The position after a chain of layouts, by division and remainder, lane by lane."""
        known = scope.memo.get(("chain", address))
        if known is not None:
            return known
        name = self.name(("chain", address, scope.depth), "at")
        inner = Code()
        if scope.is_lane:
            start = f"{start} + lane * {step_text(step)}"
        lines, text = chain_lines(address.then, start)
        for line in lines:
            inner.add(line)
        if scope.is_lane:
            inner.add(f"{name}[lane] = {text};")
            # of two lanes, which a loop sets one by one, g++ says that they may not be set
            scope.code.add(f"{scope.lanes.type('int64')} {name}{{}};")
            scope.code.enclose(f"for (int lane = 0; lane < {scope.lanes.count}; lane++)", inner)
        else:
            inner.add(f"{name} = {text};")
            scope.code.add(f"long {name};")
            scope.code.enclose("", inner)
        scope.memo["chain", address] = name
        return name

    def _read_indexed(self, read: ReadIndexed, scope: Scope) -> str:
        window = read_window(self, read, scope)
        if window is not None:
            return window
        placed = read_by_places(self, read, scope)
        if placed is not None:
            return placed
        base = self.bases[read.buffer]
        more, vector, address = self._indexed(read.address, read.terms, scope)
        if not vector:
            return self.load(base, address, scope, more)
        index = self._with_lane_step(vector, address, scope)
        pointer = self.pointer(base, address, scope) + more
        return scope.lanes.gather(base.dtype, pointer, index, scope.count)

    def _with_lane_step(self, vector: list[str], address: Address, scope: Scope) -> str:
        step = self.lane_step(address, scope)
        if step != 0:
            vector = [*vector, f"{scope.lanes.iota('0')} * {step_text(step)}"]
        return " + ".join(vector)

    def indices(self, terms: tuple[IndexTerm, ...], scope: Scope) -> tuple[str, list[str]]:
        """What index terms add to an address: the part shared by all lanes, and vectors."""
        more, vector = "", []
        for term in terms:
            home = self.home(term.index, scope)
            key = ("index", term)
            name = home.memo.get(key)
            if name is None:
                text = self.of(term.index, home)
                name = self.name(key, "at")
                checked = checked_index(home, text, term)
                home.code.add(f"const {home.lanes.type('int64')} {name} = {checked};")
                home.memo[key] = name
            part = product_text(name, term.stride)
            if part and home.is_lane:
                vector.append(part)
            elif part:
                more += f" + {part}"
        return more, vector

    def _indexed(
        self, address: Address, terms: tuple[IndexTerm, ...], scope: Scope
    ) -> tuple[str, list[str], Address]:
        """(added to the pointer, parts of the index register, the remaining address)."""
        more, vector = self.indices(terms, scope)
        if address.then:
            at = self._position(address, scope)
            if scope.is_lane and self.lane in self.facts.moves(address):
                vector.append(at)
            else:
                more += f" + {at}"
            address = Address((0,) * len(address.strides))
        return more, vector, address

    def scatter(
        self, address: Address, terms: tuple[IndexTerm, ...], scope: Scope
    ) -> tuple[str, str | None, Address]:
        """(added to the pointer, index register or None, address) of a write with indices."""
        more, vector, address = self._indexed(address, terms, scope)
        if not vector:
            return more, None, address
        return more, self._with_lane_step(vector, address, scope), address


def _loop(scope: Scope) -> str:
    """The suffix of a pointer that a scope moves."""
    first = next(iter(scope.own.values()))[0]
    return first if first.isidentifier() else "here"
