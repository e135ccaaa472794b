"""The guards of one compile: those that a caller can break, one by one; the others by kind.

Most guards hold unless someone patches a class or adds a hook; a model has hundreds of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tcw.compiler.trace.records import CallStart, Guard, Guards
from tcw.viewers.recording import Recording
from tcw.viewers.words import plural

STATE = (
    "SHAPE_ENV",
    "GRAD_MODE",
    "GLOBAL_STATE",
    "DETERMINISTIC_ALGORITHMS",
    "DEFAULT_DEVICE",
    "TORCH_FUNCTION_STATE",
    "AUTOGRAD_SAVED_TENSORS_HOOKS",
    "FSDP_TRAINING_STATE",
)
"""Kinds that check torch's settings, in display order."""

CONSTANTS = ("CONSTANT_MATCH", "EQUALS_MATCH", "BOOL_MATCH", "NONE_MATCH", "NOT_NONE_MATCH")
VALUES = (
    "TENSOR_MATCH",
    *CONSTANTS,
    "SEQUENCE_LENGTH",
    "DICT_KEYS_MATCH",
    "DUPLICATE_INPUT",
    "RANGE_ITERATOR_MATCH",
    "TUPLE_ITERATOR_LEN",
    "TENSOR_SUBCLASS_METADATA_MATCH",
)
"""Kinds that check sizes and values rather than the identity of code and classes."""

_ARGUMENT = re.compile(r"^L\['(?!self'\])(\w+)'\](?P<rest>.*)$", re.DOTALL)
_OWN_ATTRIBUTE = re.compile(r"^L\['self'\]\.\w+$")
_GLOBAL = re.compile(r"^G\['(?!__import_|__builtins_dict_)\w+'\]$")
_KEYS = re.compile(r"^list\(dict\.keys\(.+\)\) == \[(?P<keys>.*)\]$", re.DOTALL)
_PRIVATE = re.compile(r"__\w+__")


@dataclass(frozen=True)
class Condition:
    """A value that a caller can change, and what it must remain."""

    name: str
    value: str
    guards: tuple[Guard, ...]
    """The guard; for training flags, those of all modules with this value."""


@dataclass(frozen=True)
class KindGroup:
    """The other guards of one kind."""

    kind: str
    guards: tuple[Guard, ...]
    words: str
    """What they require; "" for an unknown kind."""
    example: str
    """The name of one of them."""


@dataclass(frozen=True)
class GuardGroups:
    """All guards of one compile."""

    conditions: tuple[Condition, ...]
    """Arguments first, then attributes and globals, then torch's settings."""
    kinds: tuple[KindGroup, ...]
    """Most common first."""


def guard_groups(recording: Recording, record: Guards) -> GuardGroups:
    """The guards of `record`, each in exactly one group."""
    passed = {argument.name for start in recording.all(CallStart) for argument in start.arguments}
    shown: list[tuple[tuple[int, int], Guard]] = []
    training: dict[str, list[Guard]] = defaultdict(list)
    folded: dict[str, list[Guard]] = defaultdict(list)
    met: set[tuple[str, str]] = set()
    valued = {guard.source for guard in record.guards if guard.kind in VALUES}
    for guard in record.guards:
        rank = _rank(guard, passed, valued)
        key = (guard.source or guard.kind, condition_value(guard))
        own = guard.source.startswith("L['self']") and guard.source.endswith(".training")
        if own and guard.kind in CONSTANTS:
            training[guard.value].append(guard)
        elif rank is None or key in met:
            folded[guard.kind].append(guard)
        else:
            met.add(key)
            shown.append((rank, guard))
    ordered = [guard for _, guard in sorted(shown, key=lambda pair: pair[0])]
    conditions = [_condition(guard) for guard in ordered if guard.source]
    conditions += [_flags(value, guards) for value, guards in training.items()]
    conditions += [_condition(one) for guard in ordered if not guard.source for one in _each(guard)]
    kinds = [
        KindGroup(kind, tuple(guards), kind_words(kind, guards), _example(guards))
        for kind, guards in folded.items()
    ]
    return GuardGroups(
        tuple(conditions), tuple(sorted(kinds, key=lambda kind: (-len(kind.guards), kind.kind)))
    )


def _each(guard: Guard) -> list[Guard]:
    """The conditions on sizes one by one, each with its line; any other guard as it is."""
    count = len(guard.values)
    if not count or count != len(guard.code) or (count == 1 and not guard.lines):
        return [guard]
    lines = guard.lines if len(guard.lines) == count else (None,) * count
    return [
        replace(guard, code=(code,), value=value, values=(), location=line, lines=())
        for code, value, line in zip(guard.code, guard.values, lines, strict=True)
    ]


def condition_value(guard: Guard) -> str:
    """What the guard requires: in words if the record has them, else torch's code."""
    for code in guard.code:
        keys = _KEYS.match(code)
        if guard.kind == "DICT_KEYS_MATCH" and keys is not None:
            return f"keys {keys['keys']}" if keys["keys"] else "no keys"
    return guard.value or "; ".join(guard.values or guard.code)


def _rank(guard: Guard, passed: Collection[str], valued: Collection[str]) -> tuple[int, int] | None:
    """The position of a guard among the conditions; None for one that is folded."""
    if guard.kind in STATE:
        held = guard.kind != "SHAPE_ENV" or condition_value(guard)
        return (3, STATE.index(guard.kind)) if held else None
    argument = _ARGUMENT.match(guard.source)
    if argument is not None:
        if _PRIVATE.search(argument["rest"]):
            return None
        if guard.kind in VALUES:
            return (0, VALUES.index(guard.kind))
        # the class of a number, or a function passed as an argument
        alone = guard.source not in valued and guard.name in passed
        return (0, len(VALUES)) if alone else None
    if guard.kind in CONSTANTS and _OWN_ATTRIBUTE.match(guard.source):
        return (1, 0)
    if guard.kind in (*CONSTANTS, "TENSOR_MATCH") and _GLOBAL.match(guard.source):
        return (2, 0)
    return None


def _condition(guard: Guard) -> Condition:
    name = guard.name or guard.source or guard.kind.lower().replace("_", " ")
    return Condition(name, condition_value(guard) or "unchanged", (guard,))


def _flags(value: str, guards: list[Guard]) -> Condition:
    modules = dict.fromkeys(guard.name.removesuffix(".training") for guard in guards)
    name = guards[0].name
    if len(modules) > 1:
        name = f"training of {len(modules)} modules"
    return Condition(name, value, tuple(guards))


def _example(guards: Sequence[Guard]) -> str:
    return next((guard.name for guard in guards if guard.name), "")


Words = Callable[[Sequence[Guard]], str]


def kind_words(kind: str, guards: Sequence[Guard]) -> str:
    """What guards of this kind require: `no hooks on 66 modules`; "" for an unknown kind."""
    words = KINDS.get(kind)
    return words(guards) if words is not None else ""


def _names(guards: Sequence[Guard]) -> int:
    return len({guard.source or guard.name for guard in guards})


def _counted(noun: str, rest: str, many: str = "") -> Words:
    return lambda guards: f"{plural(_names(guards), noun, many)} {rest}"


def _hooks(guards: Sequence[Guard]) -> str:
    owners = {guard.name.rpartition(".")[0] or guard.name for guard in guards}
    return f"no hooks on {plural(len(owners), 'module')}"


def _tensors(guards: Sequence[Guard]) -> str:
    of_self = all(guard.source.startswith("L['self']") for guard in guards)
    noun, many = ("parameter or buffer", "parameters and buffers") if of_self else ("tensor", "")
    dtypes = Counter(guard.value.partition("[")[0] for guard in guards if "[" in guard.value)
    shown = ", ".join(dtype for dtype, _ in dtypes.most_common(3))
    text = f"{plural(_names(guards), noun, many)}{' of self' if of_self else ''}"
    return f"{text}, {shown}" if shown else text


def _own_attributes(guards: Sequence[Guard]) -> str:
    counter = Counter(guard.attribute for guard in guards if guard.attribute)
    names = ", ".join(name for name, _ in counter.most_common(2)) or "overriding attribute"
    more = f" or {len(counter) - 2} more" if len(counter) > 2 else ""
    return f"no {names}{more} set on {plural(_names(guards), 'object')}"


KINDS: dict[str, Words] = {
    "EMPTY_NN_MODULE_HOOKS_DICT": _hooks,
    "TENSOR_MATCH": _tensors,
    "NOT_PRESENT_IN_GENERIC_DICT": _own_attributes,
    "TYPE_MATCH": _counted("object", "of the same class"),
    "CONSTANT_MATCH": _counted("value", "unchanged"),
    "EQUALS_MATCH": _counted("value", "unchanged"),
    "CONSTANT_SUBCLASS_MATCH": _counted("value", "unchanged"),
    "BOOL_MATCH": _counted("flag", "unchanged"),
    "NONE_MATCH": _counted("name", "that is None"),
    "NOT_NONE_MATCH": _counted("name", "that is not None"),
    "DUPLICATE_INPUT": _counted("name", "for the same object as another name"),
    "CLOSURE_MATCH": _counted("function", "not replaced"),
    "FUNCTION_MATCH": _counted("function", "not replaced"),
    "BUILTIN_MATCH": _counted("built-in function", "not replaced"),
    "MODULE_MATCH": _counted("Python module", "not replaced"),
    "CLASS_MATCH": _counted("class", "not replaced"),
    "ID_MATCH": _counted("name", "for exactly the same object"),
    "NN_MODULE": _counted("module", "exactly the same"),
    "WEAKREF_ALIVE": _counted("object", "still alive"),
    "HASATTR": _counted("object", "with the same attributes (those checked)"),
    "SEQUENCE_LENGTH": _counted("sequence", "of the same length"),
    "TUPLE_ITERATOR_LEN": _counted("iterator", "with as many items left"),
    "RANGE_ITERATOR_MATCH": _counted("range", "at the same position"),
    "COUNT_ITERATOR_MATCH": _counted("counter", "at the same position"),
    "DICT_KEYS_MATCH": _counted("dictionary", "with the same keys", "dictionaries"),
    "MAPPING_KEYS_CHECK": _counted("mapping", "with the same keys"),
    "DICT_CONTAINS": _counted("dictionary", "with the keys looked up", "dictionaries"),
    "DICT_NOT_CONTAINS": _counted("dictionary", "without the keys looked up", "dictionaries"),
    "SET_CONTAINS": _counted("set", "with the items looked up"),
    "SET_NOT_CONTAINS": _counted("set", "without the items looked up"),
    "DICT_VERSION": _counted("dictionary", "not changed", "dictionaries"),
    "DISPATCH_KEY_SET_MATCH": _counted("tensor", "with the same dispatch keys"),
    "DUAL_LEVEL": lambda _: "the same nesting of forward-mode AD",
    "FUNCTORCH_STACK_MATCH": lambda _: "the same nesting of torch.func transforms",
    "TENSOR_SUBCLASS_METADATA_MATCH": _counted("tensor subclass", "with the same metadata"),
    "DTENSOR_SPEC_MATCH": _counted("distributed tensor", "with the same placement"),
    "SHAPE_ENV": lambda _: "no condition on sizes",
}
"""torch's kind -> what it requires (`GuardBuilder` in torch/_dynamo/guards.py)."""
