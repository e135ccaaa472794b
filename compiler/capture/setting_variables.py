"""Environment variables behind torch's settings.

A setting's default is an expression in the text of its module (torch/_inductor/config.py), such as
`max_autotune = os.environ.get("TORCHINDUCTOR_MAX_AUTOTUNE") == "1"`. No function of torch's says
which variable that is, so the text is read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tcw.compiler.capture.settings import MODULES

LONGEST = 200
"""Characters of a value that are kept."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{3,}")


def setting_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Setting -> `VARIABLE=value`, for each variable that is set and from which torch has taken a
    setting; those of `MODULES` that are imported. Modules without a readable text have none."""
    found: dict[str, str] = {}
    for module in MODULES:
        file = getattr(sys.modules.get(module), "__file__", None)
        try:
            text = Path(file).read_text(encoding="utf-8") if file else ""
            wanted = {name for name in _VARIABLE.findall(text) if name in environ}
            tree = ast.parse(text) if wanted else ast.Module([], [])
        except (OSError, ValueError, SyntaxError):
            continue
        for setting, variable in _read(tree.body, module):
            if variable in wanted:
                found.setdefault(setting, f"{variable}={environ[variable][:LONGEST]}")
    return found


def _read(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    """(setting, variable) for each text in an assigned expression that may be a variable's name."""
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _read(one.body, f"{prefix}.{one.name}")
        elif isinstance(one, (ast.If, ast.Try)):
            yield from _read(one.body, prefix)
        elif isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            for node in ast.walk(one.value):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    for name in names:
                        yield f"{prefix}.{name}", node.value
