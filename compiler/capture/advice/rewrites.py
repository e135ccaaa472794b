"""Python that torch cannot trace, in a form that it can."""

from __future__ import annotations

import ast
import math
import textwrap

from tcw.compiler.capture.advice.branches import one_question
from tcw.compiler.capture.advice.broken import Advised, Broken
from tcw.compiler.capture.advice.site import Site, site
from tcw.compiler.capture.advice.user_source import by_changes
from tcw.compiler.trace.records import Advice

_INTEGERS = ("ceil", "floor", "trunc")
"""Functions of `math` that give an integer, where NumPy's give a float."""


def advise(broken: Broken) -> Advised:
    place = site(broken)
    if place is None:
        return ()
    for rewrite in (_number, _index, _assertion, _copied, _objects, _text, _sorted, _set, _sparse,
                    _context, _copy, _check):  # fmt: skip
        if advised := rewrite(broken, place):
            return advised
    return ()


def _calls(place: Site) -> list[tuple[ast.Call, str]]:
    """The calls in the instruction, and what they call."""
    return [
        (node, place.qualified(node.func))
        for node in ast.walk(place.expression or ast.Tuple([], ast.Load()))
        if isinstance(node, ast.Call)
    ]


def _number(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`np.lcm(a, b)` as `math.lcm(a, b)`: on tensors it raises."""
    imports = [one for one in place.source.tree.body if isinstance(one, ast.Import)]
    if not imports or place.imports.get("math", "math") != "math" or "math" in place.locals:
        return ()
    for call, name in _calls(place):
        package, _, function = name.rpartition(".")
        if package != "numpy" or function in _INTEGERS or not hasattr(math, function):
            continue
        changes = place.source.replaced((call.func, f"math.{function}"))
        if "math" not in place.imports:
            changes = (place.source.above(imports[0].lineno, "import math"), *changes)
        text = (
            "If its arguments are numbers, use Python's math: torch traces NumPy's calls as"
            " operations on tensors"
        )
        return (by_changes(text, changes),)
    return ()


def _index(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`SCALES[level]` of a list of numbers, with a tensor as the index."""
    node = place.expression
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
        return ()
    if node.slice.id not in dict(broken.tensors) or "torch" not in place.imports:
        return ()
    if not isinstance(node.value, ast.Name) or not _numbers(_module_value(place, node.value)):
        return ()
    name = node.value.id
    return place.instead(
        f"Take it from a tensor of the numbers in {name}: a list needs the index on the host",
        (node, f"torch.tensor({name}).take({node.slice.id})"),
    )


def _module_value(place: Site, name: ast.Name) -> ast.expr | None:
    """What the module assigns to a name that it binds once."""
    if not place.reads_only_fixed(name):
        return None
    return next(
        (
            node.value
            for node in place.source.tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name.id
        ),
        None,
    )


def _numbers(value: ast.expr | None) -> bool:
    try:
        items = ast.literal_eval(value) if value is not None else ()
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return (
        isinstance(items, list | tuple)
        and bool(items)
        and len({*map(type, items)}) == 1
        and (type(items[0]) in (int, float))
    )


def _assertion(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """An assert whose message is no constant."""
    statement = place.statement
    if not isinstance(statement, ast.Assert) or statement.msg is None:
        return ()
    message = statement.msg
    if isinstance(message, ast.Constant) or not one_question(statement.test):
        return ()
    texts = [
        node.value
        for node in ast.walk(message)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    text = texts[0] if len(texts) == 1 else ast.unparse(message)
    return place.instead(
        "Give it a constant message: then the graph checks it",
        (message, repr(text)),
        effect="it raises a RuntimeError, with a constant message",
    )


def _copied(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`copy.deepcopy(x)` of a tensor: a leaf of its own."""
    for call, name in _calls(place):
        of = call.args[0] if name == "copy.deepcopy" and len(call.args) == 1 else None
        if isinstance(of, ast.Name) and of.id in dict(broken.tensors):
            return place.instead("Copy the tensor itself", (call, f"{of.id}.detach().clone()"))
    return ()


def _objects(broken: Broken, place: Site) -> tuple[Advice, ...]:
    call = place.expression
    if not broken.type.startswith("ndarray.astype(object)") or not isinstance(call, ast.Call):
        return ()
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "astype":
        return ()
    return place.instead(
        "If it need not hold Python's objects, keep the array's own dtype",
        (call, ast.unparse(call.func.value)),
        effect="the array holds numbers, not objects",
    )


def _text(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`exec("a = 1", names)` and `eval("x + 1")`: the statement itself."""
    call = place.expression
    function = (
        call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    )
    if not isinstance(call, ast.Call) or not call.args or call.keywords or function in place.locals:
        return ()
    text = call.args[0]
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return ()
    try:
        if function == "eval" and len(call.args) == 1:
            inner = ast.unparse(ast.parse(text.value.strip(), mode="eval"))
            return place.instead("Write the expression itself", (call, f"({inner})"))
        body = ast.parse(text.value).body if function == "exec" else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    if len(call.args) != 2 or not isinstance(call.args[1], ast.Name) or len(body) != 1:
        return ()
    only = body[0]
    if not isinstance(only, ast.Assign) or len(only.targets) != 1:
        return ()
    target = only.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(only.value, ast.Constant):
        return ()
    new = f"{call.args[1].id}[{target.id!r}] = {ast.unparse(only.value)}"
    return place.instead("Write the assignment itself", (place.statement, new))


def _sorted(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`parts.sort(key=lambda part: part.sum())` with torch's argsort, which is as stable."""
    call = place.expression
    if not isinstance(call, ast.Call) or "sort" not in broken.type:
        return ()
    options = {one.arg: one.value for one in call.keywords}
    key, reverse = options.get("key"), options.get("reverse", ast.Constant(False))
    method = isinstance(call.func, ast.Attribute) and call.func.attr == "sort"
    of = call.func.value if isinstance(call.func, ast.Attribute) else (*call.args, None)[0]
    known = isinstance(key, ast.Lambda) and len(key.args.args) == 1
    if not known or not isinstance(reverse, ast.Constant) or not isinstance(of, ast.Name):
        return ()
    if len(options) > 1 + ("reverse" in options) or len(call.args) != (0 if method else 1):
        return ()
    if not method and ast.unparse(call.func) != "sorted":
        return ()
    assert isinstance(key, ast.Lambda)
    item = key.args.args[0].arg
    keys = f"torch.stack([{ast.unparse(key.body)} for {item} in {of.id}])"
    down = ", descending=True" if reverse.value else ""
    made = f"list(torch.stack({of.id})[{keys}.argsort(stable=True{down})])"
    node: tuple[ast.AST, str] = (call, made)
    if method:
        node = (place.statement, f"{of.id}[:] = {made}")
    return place.instead(
        "If the tensors have one shape, sort them as one tensor: Python sorts by numbers on the"
        " host",
        node,
        effect=f"{of.id} holds copies" if method else "the list holds copies",
    )


def _set(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """A set of tensors that the module makes, and that is only read."""
    if "set with tensors" not in broken.type:
        return ()
    for name in ast.walk(place.statement):
        made = _module_value(place, name) if isinstance(name, ast.Name) else None
        if not isinstance(name, ast.Name) or not isinstance(made, ast.Set):
            continue
        if not all(isinstance(one, ast.Call) for one in made.elts):
            continue
        if any(
            isinstance(place.source.parents.get(one), ast.Attribute | ast.BinOp | ast.Compare)
            for one in place.source.all(ast.Name)
            if one.id == name.id
        ):
            continue
        items = ", ".join(map(ast.unparse, made.elts))
        return place.instead(f"Make {name.id} a list: a set has no order", (made, f"[{items}]"))
    return ()


def _sparse(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`a.to_sparse()` that is only multiplied with `torch.sparse.mm`."""
    if "sparse Tensor" not in broken.type:
        return ()
    inside = list(ast.walk(place.function))
    made = [
        (node, ast.unparse(node.func.value))
        for node in inside
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("to_sparse", "to_sparse_csr", "to_sparse_coo")
    ]
    products = [
        (node.func, "torch.mm")
        for node in inside
        if isinstance(node, ast.Call) and place.qualified(node.func) == "torch.sparse.mm"
    ]
    if not made:
        return ()
    return place.instead(
        "If the matrix is not much sparser than dense, multiply it as it is",
        *made,
        *products,
        effect="it is multiplied as a dense matrix",
    )


def _context(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`with closing(f()) as it:` as `try` and `finally`; a `with` that binds no name left out."""
    statement = place.statement
    around = [statement, *place.source.up(statement)]
    block = next((one for one in around if isinstance(one, ast.With)), None)
    if block is None or block is not statement or len(block.items) != 1:
        return ()
    item = block.items[0]
    inner = place.expression or item.context_expr
    if inner not in ast.walk(item.context_expr) and "context" not in broken.type:
        return ()
    first, last = block.body[0].lineno, block.end_lineno or block.lineno
    body = place.dedented(first, block.body[-1])
    if body is None:
        return ()
    call = item.context_expr
    closing = isinstance(call, ast.Call) and place.qualified(call.func) == "contextlib.closing"
    if isinstance(call, ast.Call) and closing and len(call.args) == 1 and first > block.lineno:
        name = (
            item.optional_vars.id
            if isinstance(item.optional_vars, ast.Name)
            else place.new_name("closed")
        )
        tried = textwrap.indent(body, "    ")
        code = f"{name} = {ast.unparse(call.args[0])}\ntry:\n{tried}\nfinally:\n    {name}.close()"
        change = place.lines(block.lineno, last, code)
        return (by_changes("Close it in `finally`: it is the same", (change,)),)
    if item.optional_vars is not None or first == block.lineno:
        return ()
    change = place.lines(block.lineno, last, body)
    return (
        by_changes(
            "If its block does not need it, leave the `with` out, or move it outside the compiled"
            " function",
            (change,),
            effect=f"`{ast.unparse(call)}` is not entered",
        ),
    )


def _copy(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`if …: x = x.clone()`: a copy has the same values."""
    statement = place.statement
    if not _decides(place) or not isinstance(statement, ast.If):
        return ()
    only = statement.body[0]
    if not isinstance(only, ast.Assign) or not isinstance(only.targets[0], ast.Name):
        return ()
    name = only.targets[0].id
    if ast.unparse(only.value) not in (f"{name}.clone()", f"{name}.contiguous()"):
        return ()
    change = place.lines(
        statement.lineno, statement.end_lineno or statement.lineno, f"{name} = {name}.clone()"
    )
    text = "Copy it always: the values are the same"
    return (by_changes(text, (change,), effect=f"{name} is always copied"),)


def _check(broken: Broken, place: Site) -> tuple[Advice, ...]:
    """`if time.monotonic() > deadline: raise …`"""
    statement = place.statement
    if not _decides(place) or not isinstance(statement, ast.If):
        return ()
    clock = any(name.partition(".")[0] == "time" for _, name in _calls(place))
    if not clock or not isinstance(statement.body[0], ast.Raise):
        return ()
    return (
        by_changes(
            "Check the time outside the compiled function, before or after the call",
            (place.without(statement),),
            effect=f"`{ast.unparse(statement.test)}` is not checked inside",
        ),
    )


def _decides(place: Site) -> bool:
    """Whether the instruction is in the condition of an `if` with one statement and no `else`."""
    statement = place.statement
    if not isinstance(statement, ast.If) or len(statement.body) != 1 or statement.orelse:
        return False
    return any(node is place.expression for node in ast.walk(statement.test))
