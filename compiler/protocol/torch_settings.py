"""A torch setting as the line of code that makes it. No torch: `tcw.workbench.worker` applies it.

    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.reorderable_logging_functions.add(print)

The module may be omitted (`capture_scalar_outputs = True`); it defaults to Dynamo's.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

MODULES = (
    "torch._dynamo.config",
    "torch._functorch.config",
    "torch._inductor.config",
    "torch.fx.experimental._config",
)

DEFAULT_MODULE = MODULES[0]


class SettingError(Exception):
    """A line that is not a setting; the message says what one looks like."""


@dataclass(frozen=True)
class TorchSetting:
    """One setting."""

    module: str
    """One of `MODULES`."""
    name: str
    """`capture_scalar_outputs`; for Inductor including the class: `cpp.threads`."""
    value: object = None
    """A constant, or a list or tuple of constants; unused with `adds`."""
    adds: str = ""
    """The name of a function to add to a set: `print`, `logger.info`."""

    @property
    def code(self) -> str:
        """The line of code."""
        left = f"{self.module}.{self.name}"
        return f"{left}.add({self.adds})" if self.adds else f"{left} = {self.value!r}"


def read_setting(line: str) -> TorchSetting:
    """Parse a line of code. Raises `SettingError`."""
    try:
        (statement,) = ast.parse(line.strip()).body
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
            value = ast.literal_eval(statement.value)
            return TorchSetting(*_split(ast.unparse(target)), value=value)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            (function,) = call.args
            left, _, method = ast.unparse(call.func).rpartition(".")
            adds = ast.unparse(function)
            if method == "add" and _dotted(adds) and not call.keywords:
                return TorchSetting(*_split(left), adds=adds)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise SettingError(
        f"{line!r}: expected a line such as 'capture_scalar_outputs = True' or "
        "'reorderable_logging_functions.add(print)'"
    )


def _split(left: str) -> tuple[str, str]:
    """The module and the name in it. Raises ValueError for anything else."""
    module = next((one for one in MODULES if left.startswith(f"{one}.")), "")
    name = left.removeprefix(f"{module}.") if module else left
    if name.partition(".")[0] == "torch" or not _dotted(name):
        raise ValueError(left)
    return module or DEFAULT_MODULE, name


def _dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))
