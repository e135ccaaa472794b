"""Printing, warnings, logging and files: what talks to the outside world."""

from __future__ import annotations

import re

from compiler.capture.advice.broken import Broken, calls
from compiler.trace.records import Advice

_BUILTIN = re.compile(r"^builtin (\w+)\b")
_SKIPPED = re.compile(r"^module: (?P<module>[\w.]+), qualname: (?P<name>[\w.]+)")
_LOGGER = re.compile(r"<(?P<kind>[\w.]*Logger|RootLogger) [^>]*>\.(?P<method>\w+)")

FILES = {
    ("torch.serialization", "save"),
    ("torch.serialization", "load"),
    ("pickle", "dump"),
    ("pickle", "dumps"),
    ("json", "dump"),
    ("numpy", "save"),
    ("numpy", "savez"),
}
CLOCKS = {
    "time",
    "perf_counter",
    "monotonic",
    "process_time",
    "perf_counter_ns",
    "time_ns",
    "sleep",
}


def advise(broken: Broken) -> tuple[Advice, ...]:
    builtin = _BUILTIN.match(broken.context)
    if builtin and builtin[1] == "print":
        return (_reorder("print", "torch prints after the graph instead of cutting it"),)
    if builtin and builtin[1] in ("open", "input"):
        return (_outside(builtin[1]),)
    logger = _LOGGER.search(broken.context)
    if logger and "logging" in broken.type:
        return _logger(broken, logger["method"])
    skipped = _SKIPPED.match(broken.context)
    if skipped:
        return _skipped(skipped["module"], skipped["name"])
    return ()


def _skipped(module: str, name: str) -> tuple[Advice, ...]:
    if module in ("_warnings", "warnings") and name == "warn":
        return (_reorder("warnings.warn", "torch warns after the graph instead of cutting it"),)
    if (module, name) in FILES:
        return (_outside(f"{module.replace('torch.serialization', 'torch')}.{name}"),)
    if module == "time" and name in CLOCKS:
        return (
            Advice(
                text=f"time.{name} runs on the host: call it outside the compiled function, around"
                " the call"
            ),
        )
    return ()


def _reorder(function: str, effect: str) -> Advice:
    return Advice(
        text=f"Allow {function} to be moved: {effect}",
        code=f"torch._dynamo.config.reorderable_logging_functions.add({function})",
    )


def _outside(function: str) -> Advice:
    return Advice(
        text=f"{function} needs the host: return the value and call it outside the compiled"
        " function"
    )


def _logger(broken: Broken, method: str) -> tuple[Advice, ...]:
    """The very call can be ignored; the name of the logger is read from the source."""
    call = broken.expression.split("(")[0].strip()
    known = call.endswith(f".{method}") and calls(f"{call}()", call)
    return (
        Advice(
            text="Leave log calls out of the compiled code; they then do not log there",
            code=f"torch._dynamo.config.ignore_logging_functions.add({call})" if known else "",
        ),
    )
