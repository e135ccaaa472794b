"""Hypothesis strategies for any record, built from the records' own type annotations."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from tcw.compiler.trace.records import (
    AnyRecord,
    CompiledStep,
    EagerOperation,
    End,
    Kernel,
    Region,
    Start,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def strategy(kind: inspect.Type) -> st.SearchStrategy[object]:
    """Values of a type as msgspec describes it."""
    match kind:
        case inspect.StrType():
            return TEXTS
        case inspect.IntType():
            return st.integers(kind.ge, kind.le)
        case inspect.FloatType():
            return st.floats(kind.ge, kind.le, allow_nan=False, allow_infinity=False)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.UnionType():
            return st.one_of([strategy(one) for one in kind.types])
        case inspect.VarTupleType():
            return st.lists(strategy(kind.item_type), max_size=2).map(tuple)
        case inspect.TupleType():
            return st.tuples(*[strategy(item_type) for item_type in kind.item_types])
        case inspect.DictType():
            return st.dictionaries(strategy(kind.key_type), strategy(kind.value_type), max_size=2)
        case inspect.StructType():
            fields = {field.name: strategy(field.type) for field in kind.fields}
            return st.builds(kind.cls, **fields)
    raise TypeError(f"no strategy for {kind}")


def records() -> st.SearchStrategy[AnyRecord]:
    """Any record with any values, start records of a schema that this version reads."""
    union = inspect.type_info(AnyRecord)
    assert isinstance(union, inspect.UnionType)
    kinds = [strategy(kind) for kind in union.types]
    return st.one_of(kinds).map(_readable)  # type: ignore[arg-type]


def recordings(min_size: int = 0, max_size: int = 6) -> st.SearchStrategy[list[AnyRecord]]:
    """Any records as one recording would write them: one start, nothing after the end, every name
    once, and no two at one time."""
    return st.lists(records(), min_size=min_size, max_size=max_size).map(_one_recording)


def _one_recording(found: list[AnyRecord]) -> list[AnyRecord]:
    kept: list[AnyRecord] = []
    for number, record in enumerate(found, start=1):
        if isinstance(record, Start) and any(isinstance(one, Start) for one in kept):
            continue
        changes: dict[str, object] = {"at": number / 1000}
        if isinstance(record, (Kernel, EagerOperation, CompiledStep, Region)):
            changes["id"] = f"{record.id}{number}"
        kept.append(msgspec.structs.replace(record, **changes))
        if isinstance(record, End):
            kept[-1] = msgspec.structs.replace(kept[-1], lines=0)
            break
    return kept


def _readable(record: AnyRecord) -> AnyRecord:
    if hasattr(record, "schema_version"):
        return msgspec.structs.replace(record, schema_version=1)
    return record
