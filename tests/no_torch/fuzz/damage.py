"""Traces with damage: every field of every record in turn. A number makes the same one again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import msgspec
from msgspec import inspect

from tcw.compiler.trace.records import AnyRecord
from tests.block_trace import block_trace
from tests.no_torch import profiles, traces
from tests.no_torch.asking import stopped
from tests.no_torch.both_engines import both_engines_trace
from tests.no_torch.every_record import every_record, made
from tests.no_torch.profiles_on_a_gpu import bert_on_a_gpu
from tests.no_torch.stepping import attention
from tests.no_torch.two_runs import two_runs

Row = dict[str, Any]
Field = tuple[str, ...]
"""Tag of a record, then names of fields: `("kernel", "lines", "locations", "line")`."""

Base = Callable[[], list[AnyRecord]]

BASES: tuple[Base, ...] = (
    every_record, block_trace, both_engines_trace, two_runs, attention, stopped, bert_on_a_gpu,
    profiles.block_profile, profiles.masked_attention, profiles.graph_break,
    profiles.float_argument, profiles.training, profiles.layout_copies, profiles.host_bound,
    profiles.spilled, profiles.fallback, profiles.wrong_kernel, profiles.modes, profiles.trials,
    traces.slower, traces.failed, traces.predicted, traces.recompile_limit,
)  # fmt: skip

EVIL = "\x1b[2J\x9b31m\u202e\x00\r\n\u2028[/x]"
NUMBERS = (
    0, -1, 1, 10**3, 10**6, 10**7, 10**9, 2**31 - 1, 10**12, 2**53, 2**63 - 1, 2**63, -(2**63),
    0.5, -0.5, 1e-300, 1e9, 1e30, 1e308, -1e308,
)  # fmt: skip
WORDS = (
    "", "x", "/", ":", "0/0", "a/b/c", "k4", "op9_op10", EVIL, "9" * 30, "-", "_", "(" * 500,
    "9" * 5000, "src:a:x", "src:", "fx:", "decision:", "²", "op1_op²", "f32[8", "if x:\n" * 50,
)  # fmt: skip
LONG = 100_000
TIMES = 200
"""How often a list or a record is repeated."""


@dataclass(frozen=True)
class Damaged:
    """One damaged trace."""

    data: bytes
    said: str
    """What was done to which trace."""


@cache
def fields() -> tuple[Field, ...]:
    """Every field of every record, with those of the parts inside."""
    return tuple(path for tag, kind in kinds().items() for path in _fields(kind, (tag,)))


@cache
def kinds() -> dict[str, inspect.StructType]:
    """Tag -> the type of its record."""
    union = inspect.type_info(AnyRecord)
    assert isinstance(union, inspect.UnionType)
    types = [kind for kind in union.types if isinstance(kind, inspect.StructType)]
    return {str(kind.tag): kind for kind in types}


def damaged(number: int) -> Damaged:
    """Trace `number`: the field whose turn it is, then others by chance, then perhaps the order of
    the records."""
    random = Random(number)
    field = fields()[number % len(fields())]
    with_tag = [base for base in range(len(BASES)) if field[0] in _tags(base)]
    base = random.choice(with_tag)
    rows = _rows(base)
    said = [f"{BASES[base].__name__}: {_damage_field(rows, field, random)}"]
    for _ in range(random.choice((0, 2, 5, 10))):
        tag = random.choice(sorted({row["record"] for row in rows}))
        more = random.choice([one for one in fields() if one[0] == tag])
        said.append(_damage_field(rows, more, random))
    if random.random() < 0.25:
        said.append(_damage_order(rows, random))
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return Damaged(data, "; ".join(said))


@cache
def _lines(base: int) -> tuple[bytes, ...]:
    return tuple(msgspec.json.encode(record) for record in BASES[base]())


@cache
def _tags(base: int) -> frozenset[str]:
    return frozenset(row["record"] for row in _rows(base))


def _rows(base: int) -> list[Row]:
    return [json.loads(line) for line in _lines(base)]


def _fields(kind: inspect.StructType, above: Field) -> Iterator[Field]:
    for field in kind.fields:
        yield (*above, field.name)
        inner = _struct_in(field.type)
        if inner is not None:
            yield from _fields(inner, (*above, field.name))


def _struct_in(kind: inspect.Type) -> inspect.StructType | None:
    """The part that a field holds, one or several of it."""
    match kind:
        case inspect.StructType():
            return kind
        case inspect.UnionType():
            return next(filter(None, map(_struct_in, kind.types)), None)
        case inspect.VarTupleType():
            return _struct_in(kind.item_type)
        case inspect.DictType():
            return _struct_in(kind.value_type)
    return None


def _damage_field(rows: list[Row], field: Field, random: Random) -> str:
    """Change a field of one record of this kind, or of all."""
    tag, *names = field
    of_kind = [row for row in rows if row["record"] == tag]
    everywhere = random.random() < 0.3
    chosen = of_kind if everywhere else [random.choice(of_kind)]
    kind: inspect.Type = kinds()[tag]
    places: list[Row] = list(chosen)
    for name in names[:-1]:
        kind = _type_of(kind, name)
        places = [inner for place in places for inner in _inside(place, name, kind)]
        if not everywhere and places:
            places = [random.choice(places)]
    kind = _type_of(kind, names[-1])
    how = random.choice(_hows(kind))
    changed = Change(kind, names[-1], how, Random(random.random()), small=len(places) > 3)
    for place in places:
        changed.apply(place)
    where = ".".join(field)
    return f"{where} of {'all' if everywhere else 'one'} {how}"


def _type_of(kind: inspect.Type, name: str) -> inspect.Type:
    struct = _struct_in(kind)
    assert struct is not None
    return next(field.type for field in struct.fields if field.name == name)


def _inside(place: Row, name: str, kind: inspect.Type) -> list[Row]:
    """The parts in a field; where it has none, one is made."""
    if not place.get(name):
        place[name] = json.loads(msgspec.json.encode(made(kind)))
    found = place[name]
    if isinstance(found, dict) and isinstance(kind, inspect.DictType):
        found = list(found.values())
    parts = found if isinstance(found, list) else [found]
    return [part for part in parts if isinstance(part, dict)]


def _hows(kind: inspect.Type) -> tuple[str, ...]:
    """What can be done to a field of this type, most of it such that the record is still read."""
    plain = _without_none(kind)
    match plain:
        case inspect.IntType() | inspect.FloatType():
            own: tuple[str, ...] = ("least", "most", "most", "number", "plus", "minus", "zero")
        case inspect.StrType():
            own = ("word", "word", "long", "other", "evil")
        case inspect.VarTupleType() | inspect.DictType() | inspect.TupleType():
            own = ("empty", "reversed", "twice", "many", "cut", "first")
        case inspect.LiteralType():
            own = ("literal",)
        case _:
            own = ("flip",)
    return (*own, *own, "removed", "null", "type")


def _without_none(kind: inspect.Type) -> inspect.Type:
    if isinstance(kind, inspect.UnionType):
        return next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


@dataclass
class Change:
    """What is done to a field, the same wherever it is done."""

    kind: inspect.Type
    name: str
    how: str
    random: Random
    small: bool
    """It is done in many places: long values are shorter."""

    def __post_init__(self) -> None:
        self.value = self._value()

    def _value(self) -> Any:
        kind = _without_none(self.kind)
        match self.how:
            case "least":
                return getattr(kind, "ge", None) or 0
            case "most":
                return getattr(kind, "le", None) or 1e308
            case "number":
                return self.random.choice(NUMBERS)
            case "zero" | "plus" | "minus":
                return 0
            case "word":
                return self.random.choice(WORDS)
            case "long":
                return "n" * (LONG // 100 if self.small else LONG)
            case "evil":
                return EVIL
            case "literal":
                assert isinstance(kind, inspect.LiteralType)
                return self.random.choice(kind.values)
            case "type":
                return self.random.choice((7, "7", 7.5, True, [], {}, [[]], ["x"], {"x": 1}))
        return None

    def apply(self, place: Row) -> None:
        """Change the field in this record or part."""
        name, before = self.name, place.get(self.name)
        if self.how == "removed":
            place.pop(name, None)
        elif self.how in ("plus", "minus"):
            before = before if isinstance(before, (int, float)) else 0
            place[name] = before + (1 if self.how == "plus" else -1)
        elif self.how == "other":
            words = [one for key, one in place.items() if isinstance(one, str) and key != "record"]
            place[name] = self.random.choice(words or [""])
        elif self.how == "flip":
            place[name] = not before if isinstance(before, bool) or before is None else None
        elif self.how in ("empty", "reversed", "twice", "many", "cut", "first"):
            place[name] = self._several(before)
        else:
            place[name] = self.value

    def _several(self, before: Any) -> Any:
        kind = _without_none(self.kind)
        if not before:
            before = json.loads(msgspec.json.encode(made(kind)))
        if isinstance(before, dict):
            items = list(before.items())
            items = [(f"{key}{n}", one) for n in range(self._times()) for key, one in items]
            many = {"empty": {}, "reversed": dict(items[::-1]), "many": dict(items)}
            return many.get(self.how, {**before, "": next(iter(before.values()))})
        if not isinstance(before, list):
            return before  # of another type since it was damaged before
        return {
            "empty": [],
            "reversed": before[::-1],
            "twice": before * 2,
            "many": before * self._times(),
            "cut": before[: len(before) // 2],
            "first": before[:1] * len(before),
        }[self.how]

    def _times(self) -> int:
        return 3 if self.small else TIMES


def _damage_order(rows: list[Row], random: Random) -> str:
    """Remove, repeat or move whole records."""
    tag = random.choice(sorted({row["record"] for row in rows}))
    places = [place for place, row in enumerate(rows) if row["record"] == tag]
    place = random.choice(places)
    match random.choice(("remove", "remove all", "twice", "many", "swap", "reverse", "half")):
        case "remove":
            del rows[place]
            return f"{tag} removed"
        case "remove all":
            rows[:] = [row for row in rows if row["record"] != tag]
            return f"all {tag} removed"
        case "twice":
            rows[:] = [row for row in rows for _ in range(2)]
            return "all doubled"
        case "many":
            row = rows[place]
            copies = [{**row, "at": row.get("at", 0) + n / 1e6} for n in range(TIMES)]
            rows[place:place] = copies
            return f"{tag} {TIMES} times"
        case "swap":
            other = random.randrange(len(rows))
            rows[place], rows[other] = rows[other], rows[place]
            return f"{tag} swapped with record {other}"
        case "reverse":
            rows.reverse()
            return "all reversed"
    rows[:] = rows[::2]
    return "every second removed"
