"""`cond`, `while_loop`, `scan` and their kind: calls of torch's own in a graph that we compile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch.nn.attention.flex_attention import flex_attention

import tcw.compiler.engine.backend as engine
import tcw.compiler.engine.failures as failures
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.runtime.graph_key import graph_key
from tcw.compiler.runtime.operations import operation
from tcw.compiler.trace.records import Kernel, Lowered, Warned
from tests.cpu.recorded import record
from tests.long import mostly_long

WEIGHT = nn.Parameter(torch.linspace(-1, 1, 16).reshape(4, 4))


def closure(x: Any, yes: Any) -> Any:
    y = torch.sin(x) + 1
    z = torch.cond(yes, lambda a: (a @ WEIGHT).relu(), lambda a: a.cos() @ WEIGHT, (y,))
    return (z * 2 + 1).sum(-1)


def nested(x: Any, yes: Any) -> Any:
    def inner(a: Any) -> Any:
        return torch.cond(a.mean() > 0, lambda b: b * 2, lambda b: b - 3, (a,))

    return torch.cond(yes, inner, lambda a: a + 1, (x * 3,)).exp()


def several(x: Any, yes: Any) -> Any:
    a, (b, c) = torch.cond(
        yes,
        lambda a, b: (a * 2, (a + b, b.sum(0))),
        lambda a, b: (a - 1, (a * b, b.prod(0))),
        (x * 3, x.cos()),
    )
    return a.exp() * b, c.softmax(-1)


def unread(x: Any, yes: Any) -> Any:
    a, _, c = torch.cond(
        yes, lambda a: (a + 1, a * 2, a * 3), lambda a: (a * 4, a + 5, a - 6), (x * 2,)
    )
    return a.relu() + c


def complex_numbers(x: Any, yes: Any) -> Any:
    z = torch.cond(yes, lambda a: torch.complex(a, a), lambda a: torch.complex(a, a * 2), (x + 1,))
    return z.abs() + 1


def by_size(x: Any, yes: Any) -> Any:
    return torch.cond(x.shape[0] > 3, lambda a: a * 2, lambda a: a + 1, (x.cos(),)) * 2


def of_size(x: Any, yes: Any) -> Any:
    def scaled(a: Any) -> Any:
        return a * x.shape[0]

    return torch.cond(yes, scaled, lambda a: a + 1, (x.cos(),)) * 2


def written_after(x: Any, yes: Any) -> Any:
    """What the call made is written in place, and so is what it read."""
    y = x.sin()
    z = torch.cond(yes, lambda a: a.t().contiguous() + 1, lambda a: a + 1, (y,))
    kept = z.clone()
    z.mul_(2)
    y.add_(z)
    return y, z, kept


def scanned(x: Any, yes: Any) -> Any:
    total, rows = scan(lambda c, y: (c + y, c * y), torch.zeros(x.shape[-1]), x + 1)
    return total * 2, rows.relu()


def scanned_together(x: Any, yes: Any) -> Any:
    return associative_scan(lambda a, b: a * b + 1, x * 2, dim=0, combine_mode="generic") * 3


def mapped(x: Any, yes: Any) -> Any:
    return map_rows(lambda row: row.sin() * 2, x + 1).sum() * 3


def attention(x: Any, yes: Any) -> Any:
    heads = x.reshape(1, 1, *x.shape) + torch.zeros(1, 2, 1, 1)
    return flex_attention(heads, heads + 1, heads * 2, score_mod=lambda s, b, h, q, k: s + q).relu()


def looped(x: Any, yes: Any) -> Any:
    count, made = torch.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.sin() + a), (torch.tensor(0), x * 2)
    )
    return made + count


def never_looped(x: Any, yes: Any) -> Any:
    """A loop that ends before it begins would return its operands."""
    y = x + 1
    _, z = torch.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a.sin()), (torch.tensor(0), y))
    return y.mul_(2), z


TRAINED = (
    closure, nested, several, unread, complex_numbers, by_size, of_size, scanned,
    scanned_together, mapped,
)  # fmt: skip
INFERRED = (written_after, attention, looped, never_looped)
"""torch has no gradient of these on a CPU, or cannot trace it."""


@pytest.mark.usefixtures("nothing_left_to_aten")
@pytest.mark.parametrize("yes", mostly_long([True, False], [True]))
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", [*TRAINED, *INFERRED])
def test_the_results_are_eagers(program: Callable[..., Any], dynamic: bool, yes: bool) -> None:
    trains = program in TRAINED
    start = torch.linspace(-2, 3, 16).reshape(4, 4)
    given, ours = (start.clone().requires_grad_(trains) for _ in range(2))
    WEIGHT.grad = None
    expected = _tensors(program(given, torch.tensor(yes)))
    compiled = torch.compile(program, backend=backend, dynamic=dynamic)
    found = _tensors(compiled(ours, torch.tensor(yes)))
    torch.testing.assert_close(found, expected)
    assert [one.stride() for one in found] == [one.stride() for one in expected]
    if trains:
        sum(one.abs().sum() for one in expected).backward()
        weights, WEIGHT.grad = WEIGHT.grad, None
        sum(one.abs().sum() for one in found).backward()
        torch.testing.assert_close((ours.grad, WEIGHT.grad), (given.grad, weights))


def _tensors(results: Any) -> list[torch.Tensor]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


@pytest.mark.usefixtures("nothing_left_to_aten")
def test_sizes_that_a_subgraph_returns_are_known_without_it() -> None:
    """A region returns those that its backward needs."""

    def program(x: Any) -> Any:
        @torch.compiler.nested_compile_region
        def region(a: Any) -> Any:
            return (a @ WEIGHT).relu()

        return region(region(x) + 1) * 2

    compiled = torch.compile(program, backend=backend)
    for rows in (4, 6, 5):  # from the second size on, it is a symbol
        given, ours = (torch.ones(rows, 4, requires_grad=True) for _ in range(2))
        found, expected = compiled(ours), program(given)
        torch.testing.assert_close(found, expected)
        found.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(ours.grad, given.grad)


def test_a_number_that_only_the_call_knows_leaves_the_graph_to_aten() -> None:
    def program(x: Any) -> Any:
        count, made = torch.while_loop(
            lambda n, a: n < x.shape[0], lambda n, a: (n + 1, a * 2), (0, x)
        )
        return made * count

    x = torch.ones(3)
    with record([]) as recorded, listening(recorded.recorder, Gate()):
        assert torch.equal(torch.compile(program, backend=backend)(x), program(x))
    (warned,) = recorded.all(Warned)
    assert "depends on the contents of a tensor (test_control_flow.py:" in warned.message


def test_only_the_operation_is_a_call_and_says_why() -> None:
    x = torch.randn(4, 4)
    with record([]) as recorded, listening(recorded.recorder, Gate()):
        torch.compile(closure, backend=backend)(x, torch.tensor(True))
    assert recorded.all(Warned) == []
    kernels = [(kernel.language, kernel.name) for kernel in recorded.all(Kernel)]
    assert [language for language, _ in kernels] == ["cpp", "aten", "cpp"]
    assert kernels[1][1] == "torch.ops.higher_order.cond"
    (call,) = (kernel for kernel in recorded.all(Kernel) if kernel.language == "aten")
    line = closure.__code__.co_firstlineno + 2
    assert [place.line for place in call.locations] == [line]
    (lowered,) = (one for one in recorded.all(Lowered) if one.node == "cond")
    assert lowered.fallback == "no lowering for torch.ops.higher_order.cond"


def test_what_the_subgraphs_do_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The innermost branch, too."""
    keys = []

    def keyed(module: Any, *args: Any, **options: Any) -> Any:
        keys.append(graph_key(module, {}).digest)
        return original(module, *args, **options)

    original = engine.compile_graph
    monkeypatch.setattr(engine, "compile_graph", keyed)
    for times in (2, 3, 2):

        def program(x: Any, yes: Any, times: int = times) -> Any:
            def inner(a: Any) -> Any:
                return torch.cond(a.mean() > 0, lambda b: b * times, lambda b: b - 3, (a,))

            return torch.cond(yes, inner, lambda a: a + 1, (x,)) + 1

        torch._dynamo.reset()
        x, yes = torch.ones(3), torch.tensor(True)
        assert torch.equal(torch.compile(program, backend=backend)(x, yes), program(x, yes))
    assert keys[0] == keys[2] != keys[1]


def test_a_branch_that_writes_leaves_the_graph_to_aten(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any, yes: Any) -> Any:
        y = x + 1
        z = torch.cond(yes, lambda a: a.add_(1).sin(), lambda a: a.cos(), (y,))
        return y, z

    monkeypatch.setattr(failures, "_said", set())
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        for rows in (3, 4):  # a second graph, for the same reason
            torch._dynamo.reset()
            x, yes = torch.linspace(-1, 1, rows), torch.tensor(True)
            found = torch.compile(program, backend=backend)(x, yes)
            torch.testing.assert_close(found, program(x, yes))
    (message,) = [str(one.message) for one in caught if "tcw" in str(one.message)]
    line = program.__code__.co_firstlineno + 2
    assert message == (
        "tcw cannot compile graph 0/0/inference, which runs on ATen: "
        f"cond writes its operands (test_control_flow.py:{line})"
    )
    with record([]) as recorded, listening(recorded.recorder, Gate()), torch.no_grad():
        torch.compile(program, backend=backend)(x, yes)
    assert [warned.message for warned in recorded.all(Warned)] == [message]


def test_a_returned_operand_is_copied() -> None:
    """The memory plan counts on results in memory of their own."""
    cond = operation("torch.ops.higher_order.cond")
    x = torch.ones(3)
    same, twice, view = cond(True, lambda a: (a, a, a[1:]), lambda a: (a, a, a[1:]), (x,))
    same.add_(1)
    assert (x.tolist(), twice.tolist(), view.tolist()) == ([1.0] * 3, [1.0] * 3, [1.0] * 2)
