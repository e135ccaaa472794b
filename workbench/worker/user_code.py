"""The user's file, read and parsed before torch is imported: its errors and what it binds."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import tokenize
from dataclasses import dataclass, field
from types import CodeType

from tcw.compiler.control.user_error import UserError
from tcw.compiler.trace.records import Location


@dataclass
class UserCode:
    """One file, compiled but not run."""

    file: str
    """Absolute path."""
    code: CodeType
    bound: frozenset[str] = frozenset()
    """Names that its top level binds, as far as its text shows."""
    star: bool = False
    """Whether it has an `import *`, so that it may bind others."""
    classes: dict[str, int] = field(default_factory=dict)
    """Top-level classes with their lines."""
    compiles: bool = False
    """Whether it mentions `….compile(…)` or `@….compile`, so that it may call torch.compile
    itself."""
    module: str = ""
    """Name in `sys.modules` of the module made of it; "" before it is loaded."""


def read_user_code(path: str, text: str | None = None) -> UserCode:
    """Read and parse. Raises `UserError` with the place if Python cannot read it. `text`: what to
    run instead of the file's text."""
    file = os.path.abspath(path)
    shown = os.path.basename(file)
    try:
        with open(file, "rb") as stream:
            data = stream.read()
    except OSError as error:
        reasons = {
            FileNotFoundError: "no such file",
            IsADirectoryError: "it is a folder, not a Python file",
            PermissionError: "permission denied",
        }
        reason = reasons.get(type(error), error.strerror or "it cannot be read")
        raise UserError(f"{path}: {reason}", type=type(error).__name__) from error
    if not data.strip():
        raise UserError(
            f"{shown} is empty",
            type="NoModel",
            location=Location(file=file, line=1),
            hint="it needs `model` and `example_inputs`",
        )
    try:
        tree = ast.parse(_decoded(data) if text is None else text, file)
        code = compile(tree, file, "exec", dont_inherit=True)
    except UnicodeDecodeError as error:
        raise UserError(
            f"byte 0x{data[error.start]:02x} is not {error.encoding.upper()}",
            type="SyntaxError",
            location=Location(file=file, line=data.count(b"\n", 0, error.start) + 1),
            hint="save the file as UTF-8, or name its encoding: # -*- coding: latin-1 -*-",
        ) from error
    except SyntaxError as error:
        raise _syntax_error(error, file, data) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError(
            f"{shown} is not Python source: {error}",
            type=type(error).__name__,
            location=Location(file=file, line=_line_of_null(data)),
        ) from error
    return _survey(UserCode(file, code), tree)


def _decoded(data: bytes) -> str:
    """The text, by its byte order mark or its encoding cookie, else UTF-8."""
    encoding = "utf-8"
    # if the first lines are not UTF-8 the cookie is unreadable; decoding reports the byte
    with contextlib.suppress(SyntaxError):
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def _line_of_null(data: bytes) -> int:
    """The first line with a null byte, else 1."""
    return data.partition(b"\0")[0].count(b"\n") + 1 if b"\0" in data else 1


def _syntax_error(error: SyntaxError, file: str, data: bytes) -> UserError:
    line = error.lineno or _line_of_null(data)
    column = end_column = None
    if error.text is not None and error.offset:
        column = len(error.text[: error.offset - 1].encode("utf-8", "replace"))
        if error.end_lineno == error.lineno and (error.end_offset or 0) > error.offset:
            end_column = len(error.text[: (error.end_offset or 1) - 1].encode("utf-8", "replace"))
    message = error.msg or "invalid syntax"
    location = Location(file=file, line=line, column=column, end_column=end_column)
    return UserError(message, type=type(error).__name__, location=location)


def _survey(user: UserCode, tree: ast.Module) -> UserCode:
    bound: set[str] = set()

    def bind(statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.ClassDef):
                user.classes[statement.name] = statement.lineno
                bound.add(statement.name)
                continue
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                bound.add(statement.name)
                continue
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for name in statement.names:
                    user.star |= name.name == "*"
                    bound.add(name.asname or name.name.partition(".")[0])
                continue
            if isinstance(statement, ast.If) and _is_main_check(statement.test):
                bind(statement.orelse)
                continue
            for node in ast.iter_child_nodes(statement):
                if isinstance(node, ast.expr | ast.withitem):
                    bound.update(
                        name.id
                        for name in ast.walk(node)
                        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                    )
            for block in ("body", "orelse", "finalbody"):
                bind(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                bind(handler.body)

    bind(tree.body)
    user.bound = frozenset(bound)
    user.compiles = any(
        isinstance(node, ast.Attribute)
        and node.attr == "compile"
        and not (isinstance(node.value, ast.Name) and node.value.id in ("re", "regex"))
        for node in ast.walk(tree)
    )
    return user


def _is_main_check(test: ast.expr) -> bool:
    """Whether this is `__name__ == "__main__"`, which is false if the file is loaded for its
    model."""
    return isinstance(test, ast.Compare) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(test)
    )
