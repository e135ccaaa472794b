"""Graphs as torch prints them (`print_readable` in torch/fx/graph.py), read back into nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tcw.compiler.trace.commas import split_at_commas
from tcw.compiler.trace.dtypes import SHORT_NAMES
from tcw.compiler.trace.records import Location, Node, Size, TensorMeta
from tcw.compiler.trace.records.base import MOST
from tcw.compiler.trace.refs import digits
from tcw.compiler.trace.torch_logs.logged_places import outside_torch

_WIDTHS = {
    **dict.fromkeys(("int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "complex32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
"""Bytes of an element."""
_DTYPES = {short: name for name, short in SHORT_NAMES.items()} | {
    **{f"f8e{kind}": f"float8_e{kind}" for kind in ("4m3fn", "5m2", "4m3fnuz", "5m2fnuz")},
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "c32": "complex32",
    "f8e8m0fnu": "float8_e8m0fnu",
}

_ANNOTATION = re.compile(
    r'^(?P<dtype>\w+)\[(?P<shape>[^\]"]*)\](?:\[(?P<stride>[^\]"]*)\](?P<device>[\w:]*))?$'
)
_PARAMETER = re.compile(r'^\*?(?P<name>\w+)(?:: "(?P<type>[^"]*)")?(?: = .*)?$')
_DECLARED = re.compile(r'^(?P<name>\w+): "(?P<type>[^"]*)"$')
_STATEMENT = re.compile(r'^(?P<name>\w+)(?:: "(?P<type>[^"]*)")? = (?P<value>.*)$')
_IN_PLACE = re.compile(
    r"^(?P<left>\w+) (?P<operator>[-+*/%@&|^<>]{1,2}=) (?P<right>[^;]+);  "
    r'(?P<name>\w+)(?:: "(?P<type>[^"]*)")? = (?P=left)$'
)
_SET_ITEM = re.compile(
    r"^(?P<left>\w+)\[(?P<item>.+)\] = (?P<right>[^;]+);  (?P<name>\w+) = (?P=left)$"
)
_DELETED = re.compile(r";  (?:\w+ = )+None$")
_COMMENT = re.compile(
    r"^# File: (?P<file>.+?):(?P<line>\d{1,9})"
    r"(?: in (?P<function>[^,]*))?(?:, code: (?P<code>.*))?$"
)
_CALL = re.compile(r"^(?P<target>[A-Za-z_][\w.]*)\((?P<args>.*)\)$", re.DOTALL)
_WORD = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(?<![\w.])[A-Za-z_]\w*")
_KEYWORD = re.compile(r"(?<=[(, ])(\w+) = |^(\w+) = ")
_DEVICE = re.compile(r"device\(type='(\w+)'(?:, index=(\d+))?\)")
_INFIX = re.compile(r"^(?P<left>\S+) (?P<operator>[-+*/%@&|^<>=!]{1,2}=?) (?P<right>\S+)$")
_ITEM = re.compile(r"^(?P<of>\w+)\[(?P<item>.*)\]$", re.DOTALL)
_ATTRIBUTE = re.compile(r"^(?P<of>\w+)\.(?P<name>\w+)$")
_PREFIX = re.compile(r"^(?P<operator>[-+~])(?P<right>\w+)$")
_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "//": "floordiv", "/": "truediv", "%": "mod",
    "@": "matmul", "<<": "lshift", ">>": "rshift", "&": "and_", "|": "or_", "^": "xor",
    "**": "pow", "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge",
}  # fmt: skip
_GLOBAL = re.compile(r"^_?(?P<module>math|cmath|operator)[._](?P<name>\w+)$")
"""Functions of Python's modules: the text names some by a variable, `math_exp`."""
_WRAPPED = "torch__dynamo_utils_"
_SIGNS = {"-": "neg", "+": "pos", "~": "invert"}
_INPLACE = {f"{sign}=": f"i{name.rstrip('_')}" for sign, name in _OPERATORS.items()}
_MOST_ARGS = 400


@dataclass
class FxText:
    """A printed graph."""

    nodes: tuple[Node, ...] = ()
    lines: dict[tuple[str, int], str] = field(default_factory=dict)
    """The user's source lines that its comments quote, without their indent."""


def tensor_meta(annotation: str) -> TensorMeta | None:
    """`f32[8, s0][64, 1]cpu` as a description; None if it is not a tensor."""
    match = _ANNOTATION.match(annotation)
    if match is None:
        return None
    dtype = _DTYPES.get(match["dtype"], match["dtype"])
    shape = _sizes(match["shape"])
    stride = None if match["stride"] is None else _sizes(match["stride"])
    total: int | None = _WIDTHS.get(dtype)
    for size in shape:
        known = total is not None and isinstance(size, int)
        total = total * size if known and total is not None and isinstance(size, int) else None
    return TensorMeta(
        shape=shape,
        dtype=dtype,
        stride=stride,
        device=match["device"] or "",
        bytes=total if total is not None and 0 <= total <= MOST else None,
    )


def _sizes(text: str) -> tuple[Size, ...]:
    parts = split_at_commas(text) if "(" in text else text.split(",")
    return tuple(_size(part.strip()) for part in parts if part.strip())


def _size(text: str) -> Size:
    number = digits(text.removeprefix("-"))
    if number is None:
        return text
    return -number if text.startswith("-") else number


@lru_cache(maxsize=2048)
def parse(text: str) -> FxText:
    """The nodes of the first `forward` in the text; other text is skipped.
    Ranks have many graphs in common."""
    return _Parser(text).graph()


class _Parser:
    def __init__(self, text: str) -> None:
        self.statements = _statements(text)
        self.nodes: dict[str, Node] = {}
        self.parameters: dict[str, tuple[str, str]] = {}
        """Parameters of `forward`: what the node is called, and its annotation."""
        self.begun = False
        """Whether the placeholders are nodes already."""
        self.location: Location | None = None
        self.found = FxText()

    def graph(self) -> FxText:
        indent = None
        for spaces, statement in self.statements:
            if indent is None:
                if statement.startswith("def forward("):
                    indent = spaces
                    self._signature(statement)
                continue
            if spaces <= indent and not statement.startswith("#"):
                break  # the next class, of a submodule
            if statement.startswith("#"):
                self._comment(statement)
            elif statement.startswith("return "):
                self._output(statement[7:])
                break
            else:
                self._statement(statement)
        self._begin()
        self.found.nodes = tuple(self.nodes.values())
        return self.found

    def _signature(self, text: str) -> None:
        body = text[len("def forward(") :].rpartition(")")[0]
        for part in split_at_commas(body):
            match = _PARAMETER.match(part)
            if match and match["name"] != "self":
                self.parameters[match["name"]] = match["name"], match["type"] or ""

    def _comment(self, text: str) -> None:
        match = _COMMENT.match(text)
        if match is None:
            if text.startswith("# No stacktrace"):
                self.location = None
            return
        line = digits(match["line"]) or 0
        if not outside_torch(match["file"]):
            self.location = None  # the user's line is further out, and not in the text
            return
        self.location = Location(file=match["file"], line=line, function=match["function"] or "")
        if match["code"]:
            self.found.lines[match["file"], line] = match["code"]

    def _statement(self, text: str) -> None:
        text = _DELETED.sub("", text)
        declared = _DECLARED.match(text)
        if declared:  # the joint graph unpacks them from two parameters
            for name in ("primals", "tangents"):
                self.parameters.pop(name, None)
            self.parameters[declared["name"]] = declared["name"], declared["type"]
            return
        changed = _IN_PLACE.match(text)
        if changed is not None and changed["operator"] in _INPLACE:
            target = f"operator.{_INPLACE[changed['operator']]}"
            args = f"{changed['left']}, {changed['right']}"
            kind = changed["type"] or ""
            self._add(changed["name"], "call_function", target, args, kind, self.location)
            return
        put = _SET_ITEM.match(text)
        if put is not None:
            args = f"{put['left']}, {put['item']}, {put['right']}"
            target = "operator.setitem"
            self._add(put["name"], "call_function", target, args, "", self.location)
            return
        match = _STATEMENT.match(text)
        if match is None:
            return
        name, value = match["name"], match["value"]
        if value in self.parameters and not self.begun:
            self.parameters[value] = name, match["type"] or self.parameters[value][1]
            return
        self._begin()
        op, target, args = _parts(value, self.nodes)
        self._add(name, op, target, args, match["type"] or "", self.location)

    def _begin(self) -> None:
        """Make nodes of the parameters, which are all known once something is computed."""
        if not self.begun:
            self.begun = True
            for target, (name, annotation) in self.parameters.items():
                self._add(name, "placeholder", target, "", annotation, None)

    def _output(self, value: str) -> None:
        value = value.removeprefix("pytree.tree_unflatten(")
        value = re.sub(r", self\._out_spec\)$", "", value)
        if value.startswith("("):
            parts = split_at_commas(value[1:].rpartition(")")[0])
            value = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        self._begin()
        self._add("output", "output", "output", value, "", None)

    def _add(
        self, name: str, op: str, target: str, args: str, annotation: str, location: Location | None
    ) -> None:
        words = (match.group() for match in _WORD.finditer(_KEYWORD.sub("", args)))
        value = tensor_meta(annotation)
        self.nodes[name] = Node(
            name=name,
            op=op,
            target=target,
            args=_shown(args),
            inputs=tuple(dict.fromkeys(word for word in words if word in self.nodes)),
            value=value,
            location=location,
        )


def _parts(value: str, nodes: dict[str, Node]) -> tuple[str, str, str]:
    """(operation, target, arguments) of an expression."""
    call = _CALL.match(value)
    if call is not None:
        target, args = call["target"], call["args"]
        owner, _, method = target.rpartition(".")
        if owner in nodes:
            return "call_method", method, f"{owner}, {args}" if args else owner
        if target.startswith("self."):
            return "call_module", target[5:], args
        return "call_function", _target(target), args
    if value.startswith("self."):
        return "get_attr", value[5:], ""
    item = _ITEM.match(value)
    if item is not None:
        return "call_function", "operator.getitem", f"{item['of']}, {item['item']}"
    infix = _INFIX.match(value)
    if infix is not None:
        sign = infix["operator"]
        name = _OPERATORS.get(sign) or _INPLACE.get(sign) or sign
        return "call_function", f"operator.{name}", f"{infix['left']}, {infix['right']}"
    sign = _PREFIX.match(value)
    if sign is not None:
        return "call_function", f"operator.{_SIGNS[sign['operator']]}", sign["right"]
    attribute = _ATTRIBUTE.match(value)
    if attribute is not None:
        return "call_function", "getattr", f"{attribute['of']}, '{attribute['name']}'"
    return "call_function", value[:80], ""


def _target(text: str) -> str:
    """`torch.ops.aten.add.Tensor` -> `aten.add.Tensor`, as recordings name targets."""
    if text.startswith("torch.ops."):
        operation = text[len("torch.ops.") :]
        return operation if operation.count(".") != 1 else f"torch._ops.{operation}"
    if text.startswith(_WRAPPED):
        return f"torch._dynamo.utils.{text[len(_WRAPPED) :]}"
    if text.startswith("torch._C._nn."):
        return "torch.nn.functional." + text[len("torch._C._nn.") :]
    if text.startswith("torch._C.") and "." in text[len("torch._C.") :]:
        return "torch." + text[len("torch._C.") :]
    known = _GLOBAL.match(text)
    return f"{known['module']}.{known['name']}" if known else text


def _shown(args: str) -> str:
    args = _DEVICE.sub(lambda match: ":".join(filter(None, match.groups())), args)
    args = _KEYWORD.sub(lambda match: f"{match[1] or match[2]}=", args)
    return args if len(args) <= _MOST_ARGS else args[: _MOST_ARGS - 1] + "…"


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """(indent, statement) of each statement or comment; one over several lines is joined, without
    the comments in it."""
    held: list[str] = []
    spaces = depth = 0
    for row in text.split("\n"):
        stripped = row.strip()
        if not stripped:
            continue
        if depth == 0:
            spaces = len(row) - len(row.lstrip())
            if stripped.startswith("#"):
                yield spaces, stripped
                continue
            held = []
        plain = _without_comment(stripped)
        depth += _depth(plain)
        if plain:
            held.append(plain)
        if depth <= 0:
            depth = 0
            yield spaces, " ".join(held).removesuffix(":").replace("( ", "(").replace(", )", ")")


_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_CODE = re.compile(rf"(?:{_STRING.pattern}|[^#'\"]+|['\"].*)*")
"""What is before a comment: a `#` in a string, closed or not, does not start one."""


def _without_comment(row: str) -> str:
    match = _CODE.match(row) if "#" in row else None
    return match[0].rstrip() if match else row


def _depth(row: str) -> int:
    """How many brackets the row opens more than it closes."""
    if not any(letter in row for letter in "([{)]}"):
        return 0
    row = _STRING.sub("", row)
    return sum(map(row.count, "([{")) - sum(map(row.count, ")]}"))
