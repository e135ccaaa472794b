"""Guards: the conditions for reusing a compiled frame, read when torch has built them.

Hooks `CheckFunctionManager` (torch/_dynamo/guards.py). torch itself measures how long checking all
guards takes with cold caches; the hook reads that, and checks them a few times more, warm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import msgspec

from tcw.compiler.capture import cache_entries
from tcw.compiler.capture.callers import Caller, caller_of
from tcw.compiler.capture.failing_entry import function_modes
from tcw.compiler.capture.guard_tree import GuardTree, walk_guard_tree
from tcw.compiler.capture.value_words import describe_value, type_name
from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, around_call, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id
from tcw.compiler.graphs.lines import from_summary, is_users_own, outside_torch
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import DynamicSize, Guard, Guards, Location, SpecialisedSize
from tcw.compiler.trace.source_names import closure_name, guard_name, readable

CHECKS = 3
"""Checks per measurement: few enough that most end before another program gets the processor."""
_WARM_CHECKS = 5


@dataclass
class _Build:
    """One `CheckFunctionManager` under construction."""

    values: dict[int, str] = field(default_factory=dict)
    """Descriptions of the guarded values, by `id` of the guard."""
    names: dict[int, str] = field(default_factory=dict)
    """User-level names that only the values reveal, by `id` of the guard."""
    check_us: float | None = None
    warm_us: float | None = None


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import guards as torch_guards

    manager_class = torch_guards.CheckFunctionManager
    builds: list[_Build] = []

    @contextmanager
    def building(
        manager: Any, f_code: Any, output_graph: Any, *_: Any, **__: Any
    ) -> Iterator[None]:
        if recorder.quiet:
            yield
            return
        build = _Build()
        builds.append(build)
        try:
            yield
        finally:
            builds.pop()
        with Safely(recorder, "a compile's guards"):
            _record(recorder, build, f_code, output_graph, manager.guard_manager)

    def compiled_check(
        _result: Any, _manager: Any, builder: Any, guards: Any, *_: Any, **__: Any
    ) -> None:
        if builds:
            with Safely(recorder, "the values of guards"):
                _look_at_values(builds[-1], builder, guards)

    def profiled(latency: Any, root: Any, scope: Any, *_: Any, **__: Any) -> None:
        if builds:
            builds[-1].check_us = latency
            with Safely(recorder, "the time of warm guards"):
                builds[-1].warm_us = median(warm_checks(root, scope, _WARM_CHECKS)) * 1e6

    measured = hasattr(torch_guards, "profile_guard_manager")
    return undo_all(
        around_call(manager_class, "__init__", building),
        after_call(manager_class, "compile_check_fn", compiled_check),
        *([after_call(torch_guards, "profile_guard_manager", profiled)] if measured else ()),
    )


def warm_checks(root: Any, scope: Any, count: int) -> list[float]:
    """Seconds of a check of the guards in sequence, `count` times over."""
    found = []
    for _ in range(count):
        start = perf_counter()
        for _ in range(CHECKS):
            root.check(scope)
        found.append((perf_counter() - start) / CHECKS)
    return found


def _look_at_values(build: _Build, builder: Any, guards: Any) -> None:
    """Describe each guarded value while the builder still holds the frame's values."""
    known: dict[str, str] = {}
    for guard in guards:
        source = guard.name
        if not source:
            continue
        kind = guard.create_fn_name()
        try:
            if kind in ("TYPE_MATCH", "SEQUENCE_LENGTH"):
                value = builder.get(guard)
                text = type_name(type(value))
                if kind == "SEQUENCE_LENGTH":
                    text = f"{text} of {len(value)}"
                build.values[id(guard)] = text
                continue
            if source not in known:
                known[source] = describe_value(builder.get(guard))
        except Exception:
            # guards such as `not hasattr(x, "foo")` check values that do not exist
            known[source] = ""
        build.values[id(guard)] = known[source]
        if ".__closure__[" in source:
            build.names[id(guard)] = closure_name(source, lambda text: eval(text, builder.scope))


def _record(
    recorder: Recorder, build: _Build, code: Any, output_graph: Any, guard_manager: Any
) -> None:
    compile_id = current_compile_id() or recorder.compile_id
    tree = walk_guard_tree(guard_manager.root)
    caller = caller_of(code, getattr(output_graph, "local_scope", None) or {}, recorder.arguments)
    shape_env = getattr(output_graph, "shape_env", None)
    dynamic = dynamic_sizes(shape_env, caller)
    specialised = specialised_sizes(shape_env, caller)
    symbols = {size.source: size.symbol for size in dynamic}
    state = tree.global_state()
    modes = function_modes(getattr(output_graph, "torch_function_mode_stack", None) or ())
    described = []
    for guard in sorted(output_graph.guards, key=lambda guard: guard.sort_key()):
        value = build.values.get(id(guard), "")
        name = build.names.get(id(guard)) or guard_name(guard.create_fn_name(), guard.name)
        described.append(_describe(guard, caller, name, value, tree, state, symbols, modes))
    own = _own_lines(recorder, output_graph.guards)
    files = [code.co_filename, *(line.file for line in own.values())]
    files += [guard.location.file for guard in described if guard.location is not None]
    inlined = getattr(output_graph, "traced_code", None) or ()
    files += [one.co_filename for one in inlined if outside_torch(one.co_filename)]
    files = list(dict.fromkeys(files))
    described = [
        msgspec.structs.replace(one, lines=tuple(tree.lines_of(one.code, files)))
        if one.kind == "SHAPE_ENV"
        else one
        for one in described
    ]
    record = Guards(
        compile_id=compile_id,
        guards=tuple(described),
        function=user_name(code.co_name),
        tree_nodes=tree.nodes,
        check_us=build.check_us,
        warm_us=build.warm_us,
        dynamic=dynamic,
        specialised=specialised,
        call=recorder.call,
    )
    places = [place for guard in described for place in (guard.location, *guard.lines)]
    places += [size.location for size in specialised]
    for file in {place.file for place in places if place is not None}:
        recorder.source(file)
    recorder.emit(record)
    cache_entries.keep_entry(guard_manager, code, record, state, own)


def _describe(
    guard: Any,
    caller: Caller,
    name: str,
    value: str,
    tree: GuardTree,
    state: dict[str, Any],
    symbols: dict[str, str],
    modes: str,
) -> Guard:
    kind = guard.create_fn_name()
    source = guard.name
    attribute = ""
    values: tuple[str, ...] = ()
    parts = tuple(dict.fromkeys(guard.code_list or ()))
    if kind == "TENSOR_MATCH":
        parts = tuple(_conditions(tree, source, "check_tensor(")) + parts
        value = _with_symbols(value, source, symbols)
    elif kind == "GRAD_MODE" and "grad_mode" in state:
        value = "on" if state["grad_mode"] else "off"
    elif kind == "DETERMINISTIC_ALGORITHMS" and "deterministic_algorithms" in state:
        value = "on" if state["deterministic_algorithms"] else "off"
    elif kind in ("DEFAULT_DEVICE", "AUTOGRAD_SAVED_TENSORS_HOOKS") and len(parts) == 1:
        wanted = parts[0].partition(" == ")[2]
        value = "none" if wanted == "None" else wanted
    elif kind == "DUPLICATE_INPUT" and parts:
        value = caller.named(readable(parts[0]))
    elif kind == "SHAPE_ENV":
        value, values = "", tuple(caller.named(readable(part)) for part in parts)
    elif kind == "GLOBAL_STATE":
        parts = parts or tuple(_conditions(tree, "L", "___check_global_state("))
        value = f"{state.get('num_threads', '?')} threads" if state else ""
    elif kind == "TORCH_FUNCTION_STATE":
        value = modes
    elif kind == "EMPTY_NN_MODULE_HOOKS_DICT":
        value = "empty"
    elif kind == "NOT_PRESENT_IN_GENERIC_DICT":
        attribute = _partial_argument(guard)
        wanted = f"not ___dict_contains({attribute!r}"
        parts = parts or tuple(_conditions(tree, f"{source}.__dict__", wanted))
        value = f"no attribute {attribute} of its own" if attribute else value
    return Guard(
        kind=kind,
        name=caller.named(name),
        source=source,
        code=parts,
        value=value,
        values=values,
        attribute=attribute,
        location=_location(guard),
    )


def _conditions(tree: GuardTree, source: str, start: str) -> list[str]:
    """A source's leaf conditions with this prefix, without the trailing user line."""
    texts = tree.texts.get(source, ())
    return [text.partition("  # ")[0].rstrip() for text in texts if text.startswith(start)]


def _partial_argument(guard: Any) -> str:
    """The attribute name bound in a partially applied guard function."""
    function = guard.create_fn
    arguments = [*getattr(function, "args", ()), *getattr(function, "keywords", {}).values()]
    return next((item for item in arguments if isinstance(item, str)), "")


def _with_symbols(value: str, source: str, symbols: dict[str, str]) -> str:
    """`f32[4, 32] …` with its dynamic sizes as symbols: `f32[s77, 32] …`."""
    head, bracket, rest = value.partition("[")
    shape, closing, tail = rest.partition("]")
    if not closing or not symbols:
        return value
    sizes = shape.split(", ")
    for index in range(len(sizes)):
        sizes[index] = symbols.get(f"{source}.size()[{index}]", sizes[index])
    return f"{head}{bracket}{', '.join(sizes)}{closing}{tail}"


def _location(guard: Any) -> Location | None:
    """The line that made torch install the guard."""
    return _deepest(guard.user_stack)


def _deepest(stack: Any) -> Location | None:
    """The deepest line outside torch; the deepest one if all are in torch, as in an optimizer's
    step."""
    stack = stack or ()
    users = [frame for frame in stack if outside_torch(frame.filename)]
    deepest = (users or stack)[-1:]
    return from_summary(deepest[0]) if deepest else None


def _own_lines(recorder: Recorder, guards: Any) -> dict[str, Location]:
    """Source -> the deepest line in the user's own files of the stack that installed its guard."""
    found: dict[str, Location] = {}
    for guard in guards:
        if not guard.name or guard.name in found:
            continue
        for frame in reversed(guard.user_stack or ()):
            if is_users_own(frame.filename, recorder.user_root):
                found[guard.name] = from_summary(frame)
                break
    return found


def dynamic_sizes(shape_env: Any, caller: Caller | None) -> tuple[DynamicSize, ...]:
    """The symbols of a `ShapeEnv`, one entry per source; specialised symbols are left out.

    `var_to_sources`, `var_to_range` and `replacements` are in torch/fx/experimental/
    symbolic_shapes.py; the values are in `backed_var_to_val` (`var_to_val` before torch 2.12).
    """
    if shape_env is None:
        return ()
    values = getattr(shape_env, "backed_var_to_val", None)
    if values is None:
        values = getattr(shape_env, "var_to_val", {})
    found = []
    for symbol, sources in shape_env.var_to_sources.items():
        expression = shape_env.replacements.get(symbol, symbol)
        if not expression.free_symbols:
            continue
        bounds = shape_env.var_to_range.get(symbol)
        for source in sources:
            name, text = _names(source, caller)
            found.append(
                DynamicSize(
                    symbol=str(expression),
                    name=name,
                    source=text,
                    value=_number(values.get(symbol)),
                    lower=_number(getattr(bounds, "lower", None)),
                    upper=_number(getattr(bounds, "upper", None)),
                )
            )
    return tuple(found)


def specialised_sizes(shape_env: Any, caller: Caller | None) -> tuple[SpecialisedSize, ...]:
    """What torch replaced by a number, with the stack that it keeps for its message about
    `mark_dynamic` (`ShapeEnv._set_replacement`)."""
    stacks = getattr(shape_env, "specialization_stacks", {})
    return tuple(
        SpecialisedSize(name=_names(source, caller)[0], location=_deepest(stack))
        for source, stack in stacks.items()
    )


def _names(source: Any, caller: Caller | None) -> tuple[str, str]:
    """A source in the user's terms, and torch's expression of it."""
    text = source.name if isinstance(source.name, str) else source.name()
    name = guard_name("", text)
    return (caller.named(name) if caller is not None else name), text


def _number(value: Any) -> int | float | None:
    """A sympy number as a Python number; None for None or an infinity."""
    if value is None or getattr(value, "is_infinite", False):
        return None
    if getattr(value, "is_Integer", False) or isinstance(value, int):
        number = int(value)
        return number if abs(number) < 2**62 else None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


HOOK = RecordingHook(
    name="guards",
    offers="every guard of every compile: kind, value, the line that made torch install it",
    needs=(
        "torch._dynamo.guards:CheckFunctionManager.compile_check_fn(builder)",
        "torch._guards:Guard.sort_key",
        "torch._guards:Guard.create_fn_name",
        "torch._guards:CompileContext.current_compile_id",
        "torch._C._dynamo.guards:RootGuardManager.get_leaf_guards",
        "torch._C._dynamo.guards:RootGuardManager.get_child_managers",
    ),
    install=install,
    stage="capture",
    test="capture/test_guards.py",
)
