"""Guards and recompiles: torch's tree of guards, and its reasons to compile again, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tcw.compiler.trace.compile_names import CompileNames
from tcw.compiler.trace.dtypes import short_dtype
from tcw.compiler.trace.failed_guard import GuardFailure, guard_behind, parse_failed_guard
from tcw.compiler.trace.records import (
    DynamicSize,
    FailedGuard,
    FrameStart,
    Guard,
    Guards,
    Location,
    Recompile,
)
from tcw.compiler.trace.refs import digits
from tcw.compiler.trace.source_names import SOURCE, guard_name, readable
from tcw.compiler.trace.torch_logs.logged_places import LogSources

_LEAF = re.compile(r"^(?:\| )*\+- (?P<kind>[A-Z][A-Z_0-9]+): (?P<rest>.*)$", re.DOTALL)
_MANAGER = re.compile(
    r"^(?:\| )*\+- (?:\w*Manager|\w+GuardManager): source=(?P<source>.*?), (?:accessed_by|type)="
)
_NODE = re.compile(r"^(?:\| )*\+- ")
_LATENCY = re.compile(r"^Guard latency = (?P<us>[\d.]{1,15}) us", re.MULTILINE)
_PLACE = re.compile(r"# (?P<file>[^#\n]+?\.py):(?P<line>\d{1,9}) in (?P<function>\S+)")
_TYPE = re.compile(r"type=<class '(?P<name>[^']*)'>")
_TENSOR = re.compile(
    r"DispatchKeySet\((?P<keys>[^)]*)\), torch\.(?P<dtype>\w+), device=(?P<index>\w+), "
    r"requires_grad=(?P<grad>\w+), size=\[(?P<size>[^\]]*)\], stride=\[(?P<stride>[^\]]*)\]"
)
_CHECKED = re.compile(r"^check_tensor\((?P<source>.+?), [A-Za-z_]\w*, DispatchKeySet\(")
_MARKING = "DIMENSION_DYNAMIC_MARKING_GUARD"
_AMBIENT = {
    "GLOBAL_STATE": "GLOBAL_STATE",
    "TORCH_FUNCTION_MODE_STACK": "TORCH_FUNCTION_STATE",
    "DEFAULT_DEVICE": "DEFAULT_DEVICE",
}
"""Leaves of the root that have a kind of guard of their own."""
_EQUAL = re.compile(r"^(?P<left>.+?) == (?P<right>.+)$", re.DOTALL)
_ENTRY = re.compile(r"^(?P<entry>!?\d+(?:/\d+){1,2}): ")
LONGEST = 20_000
"""Characters of a reason that are read."""


def guards_of(
    text: str, files: LogSources, compile_id: str, function: str, symbols: Mapping[str, str]
) -> Guards:
    """The guards of a compile from torch's tree (`dynamo_cpp_guards_str`): one for each thing that
    is checked, with all its conditions. `symbols`: source of a size -> its symbol."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    managers = 0
    source, held = "", ""
    for row in [*text.split("\n"), "+- "]:
        if not _NODE.match(row):
            if held and row and not row.startswith(("Guard latency", "TREE_GUARD")):
                held += "\n" + row
            continue
        if leaf := _LEAF.match(held):
            kind = _AMBIENT.get(leaf["kind"], leaf["kind"])
            key = (source, "" if source else kind)
            found.setdefault(key, []).append((kind, leaf["rest"]))
        held = row
        if "Manager" in row:
            manager = _MANAGER.match(row)
            source = manager["source"] if manager else ""
            managers += "Manager: source=" in row or "RootGuardManager" in row
            held = ""
    latency = _LATENCY.search(text)
    return Guards(
        compile_id=compile_id,
        guards=tuple(
            _guard(source, leaves, files, symbols) for (source, _), leaves in found.items()
        ),
        function=function,
        tree_nodes=managers,
        check_us=_number(latency["us"]) if latency else None,
    )


_BOUNDS = re.compile(
    r"(?:(?P<lower>\d{1,18}) <= )?(?P<source>L\[[^<>=]+\])(?: <= (?P<upper>\d{1,18}))?$"
)


def with_bounds(record: Guards, sizes: Iterable[DynamicSize]) -> Guards:
    """The guards with the compile's symbolic sizes, bounded by the guards on them."""
    bounds: dict[str, tuple[int | None, int | None]] = {}
    for code in (code for guard in record.guards for code in guard.code):
        if " <= " in code and (match := _BOUNDS.match(code)):
            bounds[match["source"]] = digits(match["lower"] or ""), digits(match["upper"] or "")
    found = []
    for size in sizes:
        lower, upper = bounds.get(size.source, (None, None))
        dynamic_size = msgspec.structs.replace(
            size,
            lower=size.lower if lower is None else lower,
            upper=size.upper if upper is None else upper,
        )
        found.append(dynamic_size)
    return msgspec.structs.replace(record, dynamic=tuple(found))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _guard(
    source: str, leaves: list[tuple[str, str]], files: LogSources, symbols: Mapping[str, str]
) -> Guard:
    kinds = [kind for kind, _ in leaves if kind != _MARKING] or [leaves[0][0]]
    # the type is checked before a value is compared: the comparison says more
    kind = next((one for one in kinds if one != "TYPE_MATCH"), kinds[0])
    kind = "TENSOR_MATCH" if "TENSOR_MATCH" in kinds else kind
    code = [_condition(rest) for _, rest in leaves]
    if kind == "TENSOR_MATCH" and (named := _CHECKED.match(code[kinds.index(kind)])):
        source = named["source"]  # of the value of a dictionary, as torch writes it elsewhere
    if kind == "LAMBDA_GUARD" and not source:
        kind = "AUTOGRAD_SAVED_TENSORS_HOOKS" if "saved_tensors_hooks" in code[0] else kind
    kind = "SHAPE_ENV" if kind == "SYMBOLIC_SHAPE_GUARD" else kind
    conditions = tuple(dict.fromkeys(code))
    places = (place_of(rest, files) for _, rest in leaves)
    return Guard(
        kind=kind,
        name=guard_name(kind, source),
        source=source,
        code=conditions,
        value=_value(kind, source, leaves, symbols),
        values=tuple(map(readable, conditions)) if kind == "SHAPE_ENV" else (),
        location=next((place for place in places if place is not None), None),
    )


def _condition(rest: str) -> str:
    """A condition without the user's line behind it."""
    return rest.partition("  # ")[0].rstrip()


def place_of(text: str, files: LogSources) -> Location | None:
    """The user's line behind a condition."""
    places = list(_PLACE.finditer(text))
    if not places:
        return None
    place = places[-1]
    file, line = files.whole(place["file"].strip()), digits(place["line"]) or 0
    if not file:
        return None
    code = text[: place.start()].rpartition("  # ")[2].strip()
    if text[: place.start()].count("  # "):
        files.quote(file, line, code)
    return Location(file=file, line=line, function=place["function"])


def _value(
    kind: str, source: str, leaves: list[tuple[str, str]], symbols: Mapping[str, str]
) -> str:
    condition = _condition(next((rest for one, rest in leaves if one == kind), leaves[0][1]))
    if kind == "TENSOR_MATCH":
        return _tensor(condition, source, symbols)
    if kind in ("EQUALS_MATCH", "CONSTANT_MATCH"):
        equal = _EQUAL.match(condition)
        return equal["right"] if equal else ""
    types = [match["name"] for _, rest in leaves if (match := _TYPE.search(rest))]
    if kind in ("TYPE_MATCH", "LENGTH_CHECK") and types:
        return types[0]
    if kind in ("DEFAULT_DEVICE", "AUTOGRAD_SAVED_TENSORS_HOOKS"):
        wanted = condition.partition(" == ")[2]
        return "none" if wanted == "None" else wanted
    return ""


def _tensor(condition: str, source: str, symbols: Mapping[str, str]) -> str:
    """`f32[s77, 32] stride (32, 1) cpu requires_grad`."""
    match = _TENSOR.search(condition)
    if match is None:
        return ""
    sizes = [part.strip() for part in match["size"].split(",") if part.strip()]
    for at, size in enumerate(sizes):
        sizes[at] = symbols.get(f"{source}.size()[{at}]", size)
    strides = [part.strip() for part in match["stride"].split(",") if part.strip()]
    strides = ["?" if part == "None" else part for part in strides]
    stride = f"({strides[0]},)" if len(strides) == 1 else f"({', '.join(strides)})"
    keys = [key.strip() for key in match["keys"].split(",")]
    device = keys[0].lower() + (f":{match['index']}" if match["index"] != "None" else "")
    words = [f"{short_dtype(match['dtype'])}[{', '.join(sizes)}]"]
    words += [f"stride {stride}"] if strides else []
    words.append(device)
    return " ".join(words + (["requires_grad"] if match["grad"] == "True" else []))


def listed_guards(payload: Any, files: LogSources, compile_id: str, function: str) -> Guards | None:
    """The guards of a log without trees (`dynamo_guards`): a list of conditions with stacks."""
    if not isinstance(payload, list):
        return None
    found = []
    for one in payload:
        if not isinstance(one, dict) or not isinstance(code := one.get("code"), str):
            continue
        stack = files.stack(one.get("user_stack"))
        source = SOURCE.search(code)
        name = source.group() if source else ""
        kind = "TENSOR_MATCH" if code.startswith("check_tensor(") else "GUARD"
        found.append(
            Guard(
                kind=kind,
                name=guard_name(kind, name),
                source=name,
                code=(_condition(code),),
                value=_tensor(code, name, {}),
                location=stack[-1] if stack else place_of(code, files),
            )
        )
    return Guards(compile_id=compile_id, guards=tuple(found), function=function)


def recompile(
    reasons: Iterable[str],
    files: LogSources,
    compile_id: str,
    start: FrameStart | None,
    entries: Mapping[str, Guards],
    names: CompileNames,
) -> Recompile:
    """Why a frame was compiled again. `start`: of a compile of it; `entries`: the guards of the
    compiles so far, by their `names`."""
    texts = [reason[:LONGEST] for reason in reasons]
    failed = tuple(_failed(text, files, entries, names) for text in texts)
    location = (failed[0].location if failed else None) or (start.location if start else None)
    return Recompile(
        compile_id=compile_id,
        call=0,
        failed=failed,
        location=location,
        source_line=files.code(location) if location else "",
        function=start.function if start else "",
        reason="\n".join(texts),
    )


def _failed(
    text: str, files: LogSources, entries: Mapping[str, Guards], names: CompileNames
) -> FailedGuard:
    stack = files.traceback(text)
    head = text.partition("\nUser stack trace:")[0]
    entry = _ENTRY.match(head)
    number = names.of(entry["entry"]) if entry else ""
    failure = parse_failed_guard(head[entry.end() if entry else 0 :].strip())
    guard = _behind(failure, entries.get(number))
    source = failure.source
    if guard is not None and guard.name == failure.name:
        source = guard.source  # of the value of a dictionary, as torch writes it elsewhere
    location = place_of(head, files) or (stack[-1] if stack else None)
    if guard is not None:
        location = location or guard.location
    if location is not None and stack and stack[-1].line == location.line:
        location = stack[-1]
    return FailedGuard(
        entry=number,
        guard=failure.text,
        kind=guard.kind if guard is not None else failure.kind,
        source=source,
        name=failure.name,
        expected=failure.expected,
        seen=failure.seen,
        location=location,
        source_line=files.code(location) if location else "",
    )


def _behind(failure: GuardFailure, guards: Guards | None) -> Guard | None:
    """The guard behind a failed condition: torch may name its source in another way."""
    if guards is None:
        return None
    name = readable(failure.source)
    generator = (guard for guard in guards.guards if name and guard.name == name)
    return guard_behind(failure, guards.guards) or next(generator, None)
