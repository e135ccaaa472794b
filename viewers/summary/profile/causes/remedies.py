"""Mechanical remedies for a cause: torch's own settings, and small edits of the source.

A suggestion here can be tried and can be wrong: `tcw profile --try` measures whether it helps and
whether the results stay the same. What needs thought (a branch on data) is left to the advice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from tcw.compiler.protocol.edits import Edit, EditError, edited, relative
from tcw.compiler.protocol.edits.source_text import SourceText, dotted
from tcw.compiler.protocol.torch_settings import SettingError, read_setting
from tcw.compiler.trace.records import Advice, CallStart
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import BreakSite
from tcw.viewers.summary.place import Place
from tcw.viewers.summary.profile.causes.cause import Suggestion

SETTINGS = {
    "Attempted to wrap RNN, GRU, or LSTM": "allow_rnn = True",
    "Dynamic shape operator": "capture_dynamic_output_shape_ops = True",
    "HOP: Unsafe side effect": "skip_fwd_side_effects_in_bwd_under_checkpoint = True",
    "LOAD_BUILD_CLASS bytecode not supported": "enable_trace_load_build_class = True",
    "Module-level backwards hooks require compiled autograd.": "compiled_autograd = True",
    "Tensor.numpy() with trace_numpy=False": "trace_numpy = True",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False":
        "capture_scalar_outputs = True",
    "call `torch.from_numpy` with `torch._dynamo.config.trace_numpy=False`": "trace_numpy = True",
    "call_method on generator": "enable_faithful_generator_behavior = False",
    "attempted to trace contextlib.contextmanager": "enable_trace_contextlib = True",
    "Forced graph break on leaf function": "debug_force_graph_break_on_leaf_return = False",
    "attempted to trace numpy function with config.trace_numpy=False": "trace_numpy = True",
    "attempted to trace torch._numpy.random function with config.use_numpy_random_stream=True":
        "use_numpy_random_stream = False",
    "torch.func.functional_call capture is disabled": "inline_inbuilt_nn_modules = True",
    "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`":
        "trace_autograd_ops = True",
}  # fmt: skip
"""torch's types of break that a Dynamo setting removes, according to torch's own hints."""

_LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")
_SPEAKS = frozenset({
    "print", "pprint", "pprint.pprint", "warnings.warn", "breakpoint", "pdb.set_trace",
    "sys.stdout.write", "sys.stderr.write", "sys.stdout.flush", "sys.stderr.flush", "tqdm.write",
    "time.sleep", "torch._dynamo.graph_break", "torch.cuda.synchronize", "gc.collect",
    *(f"logging.{level}" for level in _LEVELS),
})  # fmt: skip
"""Functions that compute nothing: without them, only their output is lost."""


def of_break(recording: Recording, site: BreakSite) -> tuple[Suggestion, ...]:
    """Settings first, which change no line; then edits, last resorts last."""
    group = f"break {site.place.file}:{site.place.line}"
    found = _by_settings(site.advice, group)
    found += of_setting(SETTINGS[site.type], group) if site.type in SETTINGS else []
    printed = _printed(recording, site, group)
    if printed:
        found = [printed]
    settings = bool(found)
    for kind, words in _edits(recording, site, settings):
        if kind == "undisable":
            found += _undisabled(recording, site, group)
        else:
            found += _edit(recording, kind, site.place, words, group)
    return tuple({suggestion.id: suggestion for suggestion in found}.values())


def of_recompile(
    recording: Recording, name: str, advice: Iterable[Advice], place: Place | None
) -> tuple[Suggestion, ...]:
    """Marks for every size that changed, a tensor for a number, and settings that advice names.
    Marks and tensors only for arguments of the model: behind a graph break, a frame may be a
    function that the model calls, whose arguments no option reaches."""
    group = f"recompile {name}"
    calls = recording.all(CallStart)
    arguments = {argument.name for call in calls for argument in call.arguments}
    found: list[Suggestion] = []
    advice = list(advice)
    for one in advice:
        option, given = one.options[:1], one.options[1::2]
        if calls and not arguments.issuperset(each.partition(":")[0] for each in given):
            continue
        if option == ("--mark-dynamic",):
            words = f"mark {' and '.join(given)} as dynamic"
            found.append(Suggestion(f"mark-dynamic {' '.join(given)}", words, one.options, group))
        elif option == ("--as-tensor",):
            found += _as_tensor(recording, given[0], place, group)
    found += _by_settings(advice, group)
    return tuple({suggestion.id: suggestion for suggestion in found}.values())


def of_attention(recording: Recording, place: Place | None) -> tuple[Suggestion, ...]:
    """Without the mask, and with the flag instead: correct if they mean the same as the mask."""
    if place is None:
        return ()
    group = f"mask {place.file}:{place.line}"
    return (
        *_edit(
            recording,
            "no-mask",
            place,
            "attention without its mask: correct if the mask hides nothing",
            group,
        ),
        *_edit(recording, "causal", place, "is_causal=True instead of a causal mask", group),
    )


def _as_tensor(
    recording: Recording, name: str, place: Place | None, group: str
) -> list[Suggestion]:
    options: tuple[str, ...] = ("--as-tensor", name)
    words = f"{name} as a tensor"
    for edit in _edit(recording, "torch-math", place, "", group) if place is not None else ():
        options += edit.options
        words += ", torch's function instead of math's"
    return [Suggestion(f"as-tensor {' '.join(options[1:])}", words, options, group)]


def of_setting(line: str, group: str) -> list[Suggestion]:
    """A line of code that is a setting, unless it names something that only an object has."""
    try:
        setting = read_setting(line)
    except SettingError:
        return []
    if setting.adds.partition(".")[0] in ("self", "cls"):
        return []
    short = setting.code.removeprefix("torch._dynamo.config.")
    return [Suggestion(f"set {short}", setting.code, ("--set", short), group)]


def _by_settings(advice: Iterable[Advice], group: str) -> list[Suggestion]:
    return [made for one in advice if one.code for made in of_setting(one.code, group)]


def _printed(recording: Recording, site: BreakSite, group: str) -> Suggestion | None:
    """The setting for `print`, if it needs sizes in a string."""
    for advice in site.advice:
        first, _, rest = advice.code.partition("\n")
        setting = of_setting(first, group)
        if not rest or not setting:
            continue
        for edit in _edit(recording, "text", site.place, "", group):
            return Suggestion(
                id=f"{setting[0].id}, {edit.id}",
                words=f"{setting[0].words}, with sizes in strings",
                options=(*setting[0].options, *edit.options),
                group=group,
            )
    return None


def _edits(recording: Recording, site: BreakSite, settings: bool) -> Iterable[tuple[str, str]]:
    """Kinds of edit that remove a break, with their words."""
    if "torch.compiler.disable()" in site.type:
        yield "undisable", ""
        return
    if any(advice.edit == "always" for advice in site.advice):
        yield "always", "its body without the `if`"
    if "assertion failed" in site.type:
        yield "drop", "without the assertion"
    if site.host_waits or "scalar" in site.type.lower():
        yield "torch-math", "torch's function instead of math's"
        yield "item", "kept as a tensor, without .item() or float()"
    spoken = _spoken(recording, site.place)
    if spoken:
        yield "drop", f"without the {spoken}"
        if not settings:
            yield "later", f"{spoken} after the result is computed"


def _spoken(recording: Recording, place: Place) -> str:
    """`print()` if the line is a call that computes nothing, else ""."""
    text = _text(recording, place.file)
    try:
        statement = SourceText(text).statement(place.line, ast.Expr)
    except EditError:
        return ""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return ""
    name = dotted(statement.value.func)
    known = name in _SPEAKS or (
        name.rpartition(".")[2] in _LEVELS and "log" in name.rpartition(".")[0].lower()
    )
    return f"{name}()" if known else ""


def _undisabled(recording: Recording, site: BreakSite, group: str) -> list[Suggestion]:
    """The lines of the function itself: the break is where it is called."""
    match = re.search(r"<(?:bound method|function) ([\w.<>]+)", site.records[0].context)
    if match is None:
        return []
    name = match[1].rpartition(".")[2]
    found: list[Suggestion] = []
    for file in recording.files:
        for line in _disabling(_text(recording, file), name):
            place = Place(file, line, "")
            found += _edit(recording, "undisable", place, f"{name} without disable", group)
    return found[:1]


def _disabling(text: str, name: str) -> Iterable[int]:
    """Lines on which a function is disabled, by a decorator or by a call with it."""
    try:
        tree = SourceText(text).tree
    except EditError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            for one in node.decorator_list:
                inner = one.func if isinstance(one, ast.Call) else one
                if dotted(inner).endswith((".disable", "disable")):
                    yield one.lineno
        elif (
            isinstance(node, ast.Call)
            and dotted(node.func).endswith(".disable")
            and [dotted(arg).rpartition(".")[2] for arg in node.args] == [name]
        ):
            yield node.lineno


def _edit(
    recording: Recording, kind: str, place: Place, words: str, group: str
) -> Sequence[Suggestion]:
    """An edit of the user's own file, if it can be applied."""
    settings = recording.settings
    file = relative(place.file, settings.file) if settings is not None else None
    if file is None:
        return ()
    edit = Edit(kind, place.line, file)
    try:
        edited(_text(recording, place.file), [edit])
    except EditError:
        return ()
    name = place.file.rpartition("/")[2]
    return (
        Suggestion(f"edit {edit}", f"{name}:{place.line} {words}", ("--edit", str(edit)), group),
    )


def _text(recording: Recording, file: str) -> str:
    return "\n".join(recording.source(file))
