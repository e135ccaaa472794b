"""The language of `--inputs`: `f32[8,64], i64[8,16](0,50257), scale=0.5, causal=True`. No torch.

    call      arguments separated by commas; `name=` makes one a keyword
    argument  a tensor, a number, a string in quotes, True, False, None; (a, b) or [a, b]
    tensor    dtype[sizes], then optionally (high) or (low,high) for its values

Values of a tensor are drawn from the normal distribution, or uniformly from low to high where
bounds are given. Whole numbers are drawn from low up to high - 1, and from {0, 1} where no bounds
are given.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from tcw.compiler.control.user_error import UserError
from tcw.compiler.trace.dtypes import SHORT_NAMES
from tcw.compiler.trace.records import Settings

DTYPES = {
    **{short: name for name, short in SHORT_NAMES.items()},
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
}
"""Short names; torch's own (`float32`) are read too."""
_LONG = frozenset(DTYPES.values())

_TENSOR = re.compile(r"(?P<dtype>[A-Za-z]\w*)\s*\[")
_NAME = re.compile(r"(?P<name>[^\W\d]\w*)\s*=(?!=)\s*")
_WORD = re.compile(r"[^\s,()\[\]=]+")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_INTEGER = re.compile(r"\d+(?:_\d+)*")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_CONSTANTS = {"True": True, "False": False, "true": True, "false": False, "None": None}

Literal = int | float | str | bool | None


@dataclass(frozen=True)
class TensorSpecification:
    """A tensor to be drawn."""

    dtype: str
    """torch's name: `float32`."""
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None


Argument = TensorSpecification | Literal | tuple["Argument", ...] | list["Argument"]


@dataclass(frozen=True)
class CallSpecification:
    """The arguments of one call."""

    positional: tuple[Argument, ...]
    keyword: dict[str, Argument]


class SpecificationError(ValueError):
    """Text that does not fit the language; the message shows the text and points into it."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        self.column = column
        super().__init__(f"--inputs {text!r}: column {column + 1}: {problem}")


def parse_inputs(text: str) -> CallSpecification:
    """Read the arguments of one call. Raises `SpecificationError`."""
    return _Parser(text).call()


def specified(settings: Settings) -> list[CallSpecification]:
    """The calls that `--inputs` asks for. Raises `UserError`."""
    try:
        return [parse_inputs(text) for text in settings.inputs]
    except SpecificationError as error:
        raise UserError(str(error), type="BadInputs", doing="reading --inputs") from error


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def call(self) -> CallSpecification:
        positional: list[Argument] = []
        keyword: dict[str, Argument] = {}
        self.space()
        while self.at < len(self.text):
            start = self.at
            name = self.match(_NAME)
            if name:
                key = name["name"]
                if key in keyword:
                    raise self.error(f"{key} is given twice", start)
                keyword[key] = self.argument(0)
            elif keyword:
                raise self.error("an argument without a name follows one with a name")
            else:
                positional.append(self.argument(0))
            self.space()
            if self.at < len(self.text):
                self.expect(",", "',' between two arguments")
        if not positional and not keyword:
            raise self.error("no arguments, e.g. f32[8,64]")
        return CallSpecification(tuple(positional), keyword)

    def argument(self, depth: int) -> Argument:
        self.space()
        if self.at >= len(self.text):
            raise self.error("an argument is missing here")
        if depth > 20:
            raise self.error("nested too deeply")
        character = self.text[self.at]
        if character == "(":
            return tuple(self.items(")", depth))
        if character == "[":
            return self.items("]", depth)
        if character in "'\"":
            return self.string()
        start = self.at
        tensor = self.match(_TENSOR)
        if tensor:
            return self.tensor(tensor["dtype"], start)
        number = self.match(_NUMBER)
        if number:
            return _number(number[0])
        word = _WORD.match(self.text, self.at)
        found = word[0] if word else character
        if found in _CONSTANTS:
            self.at += len(found)
            return _CONSTANTS[found]
        if found in DTYPES or found in _LONG:
            raise self.error(f"{found} needs its sizes: {found}[8,64], or {found}[] for a scalar")
        raise self.error(
            f"expected a tensor such as f32[8,64], a number or a string in quotes, found {found!r}"
        )

    def items(self, end: str, depth: int) -> list[Argument]:
        self.at += 1
        arguments: list[Argument] = []
        self.space()
        while not self.peek(end):
            arguments.append(self.argument(depth + 1))
            self.space()
            if not self.peek(end):
                self.expect(",", f"',' or '{end}'")
                self.space()
        self.at += 1
        return arguments

    def tensor(self, name: str, start: int) -> TensorSpecification:
        dtype = DTYPES.get(name, name if name in _LONG else "")
        if not dtype:
            known = ", ".join(DTYPES)
            raise self.error(f"no dtype {name!r}; known dtypes: {known}", start)
        shape: list[int] = []
        self.space()
        while not self.peek("]"):
            size = self.match(_INTEGER)
            if not size:
                raise self.error("expected a size or ']'")
            shape.append(int(size[0]))
            self.space()
            if not self.peek("]"):
                self.expect(",", "',' or ']' after a size")
                self.space()
        self.at += 1
        low, high = self.bounds()
        return TensorSpecification(dtype, tuple(shape), low, high)

    def bounds(self) -> tuple[float | None, float | None]:
        if not self.peek("("):
            return None, None
        start = self.at
        self.at += 1
        numbers: list[float] = []
        while True:
            self.space()
            number = self.match(_NUMBER)
            if not number:
                raise self.error("expected a number: (high) or (low,high)")
            numbers.append(_number(number[0]))
            self.space()
            if self.peek(")"):
                break
            self.expect(",", "',' or ')'")
        self.at += 1
        if len(numbers) > 2:
            raise self.error("at most two bounds: (low,high)", start)
        low, high = numbers if len(numbers) == 2 else (0, numbers[0])
        if not low < high:
            raise self.error(f"the low bound {low} is not below the high bound {high}", start)
        return low, high

    def string(self) -> str:
        match = self.match(_STRING)
        if not match:
            raise self.error("unterminated string")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # do not warn of unknown escapes
                return str(ast.literal_eval(match[0]))
        except (SyntaxError, ValueError) as error:
            raise self.error("invalid string literal") from error

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def peek(self, character: str) -> bool:
        if self.at >= len(self.text):
            if character in ")]":
                raise self.error(f"'{character}' is missing")
            return False
        return self.text[self.at] == character

    def expect(self, character: str, wanted: str) -> None:
        if not self.peek(character):
            found = self.text[self.at] if self.at < len(self.text) else "the end"
            raise self.error(f"expected {wanted}, found {found!r}")
        self.at += 1
        self.space()

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def error(self, problem: str, at: int | None = None) -> SpecificationError:
        return SpecificationError(self.text, self.at if at is None else at, problem)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
