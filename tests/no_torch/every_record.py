"""One trace with a record of every type, between those of real runs."""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from tcw.compiler.trace.records import AnyRecord, End, Start
from tests.no_torch.asking import stopped
from tests.no_torch.stepping import attention
from tests.no_torch.two_runs import two_runs


def every_record() -> list[AnyRecord]:
    """Two runs of the block, the steps of an attention, a decision that waits, and of each type
    that none of these has a record in which every text is set."""
    records = [
        *(two_run for two_run in two_runs() if not isinstance(two_run, End)),
        *(one for one in attention() if not isinstance(one, (Start, End))),
        *(one for one in stopped()[-2:]),
    ]
    have = {type(record) for record in records}
    union = inspect.type_info(AnyRecord)
    assert isinstance(union, inspect.UnionType)
    for kind in union.types:
        assert isinstance(kind, inspect.StructType)
        if kind.cls not in have and kind.cls is not End:
            records.append(made(kind))  # type: ignore[arg-type]
    return records


def made(kind: inspect.Type) -> Any:
    """A value of a type; texts say where they stand."""
    match kind:
        case inspect.StructType():
            return kind.cls(**{field.name: made(field.type) for field in kind.fields})
        case inspect.StrType():
            return "text"
        case inspect.IntType():
            return 1
        case inspect.FloatType():
            return 1.0
        case inspect.BoolType():
            return True
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.UnionType():
            return made(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
        case inspect.VarTupleType():
            return (made(kind.item_type),)
        case inspect.TupleType():
            return tuple(made(item_type) for item_type in kind.item_types)
        case inspect.DictType():
            return {made(kind.key_type): made(kind.value_type)}
    raise TypeError(f"no value for {kind}")
