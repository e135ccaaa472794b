"""Printing, warnings, logging and files: calls with effects outside the program."""

from __future__ import annotations

import ast
import copy
import re

from tcw.compiler.capture.advice.broken import BUILTIN, SKIPPED, Advised, Broken, as_advice, calls
from tcw.compiler.protocol.edits.kinds import is_size
from tcw.compiler.trace.records import Advice

_LOGGER = re.compile(r"<(?P<kind>[\w.]*Logger|RootLogger) [^>]*>\.(?P<method>\w+)")

_ALLOW = "torch._dynamo.config.reorderable_logging_functions.add({})"
_ARGUMENT = re.compile(r"<class '[\w.]*\.(\w+)'>")

PRINTED_LATER = {"TensorVariable", "ConstantVariable", "StringFormatVariable"}

HOST = {
    ("torch.serialization", "save"),
    ("torch.serialization", "load"),
    ("torch.random", "manual_seed"),
    ("numpy", "save"),
    ("numpy", "savez"),
}
LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")
NOW = ("datetime.now", "datetime.utcnow", "date.today", "datetime.today")
CLOCKS = {
    "time",
    "perf_counter",
    "monotonic",
    "process_time",
    "perf_counter_ns",
    "time_ns",
    "sleep",
}


def advise(broken: Broken) -> Advised:
    builtin = BUILTIN.match(broken.context)
    if builtin and builtin[1] == "print":
        return _print(broken)
    if "reorder a debugging function" in broken.type and "function print>" in broken.context:
        return _print(broken)
    if builtin and builtin[1] in ("open", "input"):
        return _outside(builtin[1])
    logger = _LOGGER.search(broken.context)
    if logger and "logging" in broken.type:
        return _logger(broken, logger["method"])
    module, _, method = broken.expression.partition("(")[0].strip().partition(".")
    if module == "logging" and method in LEVELS:
        return _logger(broken, method)
    if broken.expression.partition("(")[0].endswith(NOW):
        return _host_clock(broken.expression)
    skipped = SKIPPED.match(broken.context)
    if skipped:
        return _skipped(broken, skipped["module"], skipped["name"])
    return ()


def _print(broken: Broken) -> Advice:
    """torch can print later, but only tensors, constants and strings, and no keyword arguments.

    See `DebuggingVariable.can_reorder_logs` (torch/_dynamo/variables/misc.py). Sizes become strings
    in an f-string, with the same output.
    """
    kinds = _ARGUMENT.findall(broken.context)
    call = _call(broken, "print")
    plain = broken.context.endswith(" False") and (call is None or not call.keywords)
    if kinds and plain and all(kind in PRINTED_LATER for kind in kinds):
        return _reorder("print", "torch prints after the graph instead of cutting it")
    if call is not None and plain and len(call.args) == len(kinds):
        later = all(
            kind in PRINTED_LATER or is_size(argument)
            for kind, argument in zip(kinds, call.args, strict=True)
        )
        if later:
            call.args = [_in_string(item) if is_size(item) else item for item in call.args]
            return Advice(
                text="Let torch print after the graph instead of cutting it; it can print a size"
                " only inside a string",
                code=f"{_ALLOW.format('print')}\n{ast.unparse(call)}",
                place="statement",
            )
    return Advice(
        text="Print outside the compiled function, or print only tensors, numbers and strings,"
        " without keyword arguments: torch can print those after the graph"
    )


def _call(broken: Broken, name: str) -> ast.Call | None:
    """The call of `name` that forms the whole statement, without starred arguments; else None."""
    statement = broken.statement
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    if ast.unparse(call.func) != name or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    return copy.deepcopy(call)


def _in_string(argument: ast.expr) -> ast.expr:
    return ast.JoinedStr([ast.FormattedValue(argument, -1)])


def _constants_only(call: ast.Call | None) -> bool:
    if call is None or call.keywords or not call.args:
        return False
    return all(isinstance(value, ast.Constant) for value in call.args)


def _skipped(broken: Broken, module: str, name: str) -> Advised:
    if module in ("_warnings", "warnings") and name == "warn":
        if _constants_only(_call(broken, "warnings.warn")):
            effect = "torch warns after the graph instead of cutting it"
            return _reorder("warnings.warn", effect)
        return _warned_later(broken)
    if (module, name) in HOST:
        return _outside(f"{_public(module)}.{name}")
    if module == "time" and name in CLOCKS:
        return _host_clock(f"time.{name}")
    return ()


def _warned_later(broken: Broken) -> Advised:
    """torch can move a warning that has only a message."""
    call = _call(broken, "warnings.warn")
    outside = Advice(text="Warn outside the compiled function, before or after the call")
    message = call.args[0] if call is not None and call.args else None
    if not isinstance(message, ast.Constant):
        return outside
    moved = Advice(
        text="Let torch warn after the graph instead of cutting it: it can move a warning that has"
        " only a message",
        code=f"{_ALLOW.format('warnings.warn')}\nwarnings.warn({ast.unparse(message)})",
        place="statement",
        effect="the warning has no other arguments than its message",
    )
    return moved, outside


def _host_clock(call: str) -> Advised:
    name = call.partition("(")[0]
    if name == "time.sleep":
        return (
            Advice(
                text="Do not wait in the compiled function", edit="drop", effect="it does not wait"
            ),
            *as_advice(f"Call {name} outside the compiled function, before or after it"),
        )
    return f"Call {name} outside the compiled function, before or after it: it runs on the host"


def _public(module: str) -> str:
    return "torch" if module in ("torch.serialization", "torch.random") else module


def _reorder(function: str, effect: str) -> Advice:
    return Advice(text=f"Allow {function} to be moved: {effect}", code=_ALLOW.format(function))


def _outside(function: str) -> Advice:
    return Advice(text=f"Call {function} outside the compiled function: it needs the host")


def _logger(broken: Broken, method: str) -> Advised:
    """This particular call can be ignored; the logger's name is read from the source."""
    call = broken.expression.split("(")[0].strip()
    known = call.endswith(f".{method}") and calls(f"{call}()", call)
    older = any("ignore_logger_methods" in hint for hint in broken.hints)
    setting = "ignore_logger_methods" if older else "ignore_logging_functions"
    return Advice(
        text="If compiled code need not log this message, let torch ignore the call",
        code=f"torch._dynamo.config.{setting}.add({call})" if known else "",
    )
