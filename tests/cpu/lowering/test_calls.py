"""Calls: what loops do not compute runs as ATen, on memory with the promised strides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.loops.graph import Call, Graph, Operand
from tcw.compiler.lowering.driver import lower
from tcw.compiler.lowering.registry import Unsupported
from tests.cpu.lowering.harness import lowered

X = torch.randn(3, 4, 5)
SQUARE = torch.randn(4, 4)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mm": (lambda x, y: (x + 1) @ y.t(), (X[0], X[1])),
    "mm of a broadcast": (lambda x, y: torch.mm(x.expand(4, 5) * 1, y.expand(5, 6)),
                          (X[0, :1], X[0, 0, :1])),
    "bmm of what has no strides": (
        lambda x: torch.bmm(x.permute(2, 0, 1).reshape(3, 4, 5), x.transpose(1, 2)), (X,),
    ),
    "mm of windows": (lambda x: (x * 2).unfold(0, 3, 1) @ x[:3], (torch.randn(6),)),
    "mm of repeats": (lambda x: x.repeat(2, 1) @ x.t(), (X[0],)),
    "convolution, channels-last": (
        lambda x, w: F.conv2d(F.relu(x), w),
        (torch.randn(2, 3, 6, 6).contiguous(memory_format=torch.channels_last),
         torch.randn(4, 3, 3, 3)),
    ),
    "convolution of a sliced map": (
        lambda x, w: F.conv1d((x * 2)[:, :, ::2], w), (torch.randn(2, 3, 9), torch.randn(4, 3, 2)),
    ),
    "attention": (
        lambda x: F.scaled_dot_product_attention(*[x.transpose(1, 2) + i for i in range(3)]),
        (torch.randn(2, 6, 4, 8),),
    ),
    "sort": (lambda x: torch.sort(x * 2, 1), (X,)),
    "topk": (lambda x: x.topk(2).values + 1, (X,)),
    "fft": (lambda x: torch.fft.rfft(x * 2).abs(), (X,)),
    "complex numbers": (
        lambda x: torch.view_as_real(torch.complex(x, x + 1).transpose(0, 1) * 2), (X,),
    ),
    "float64 and complex outputs": (lambda x: torch.complex(x, x).t(), (X[0].double(),)),
    "float8": (lambda x: x.to(torch.float8_e4m3fn).to(torch.float32) + 1, (X,)),
    "uint16": (lambda x: x.to(torch.uint16).to(torch.int32), (torch.arange(5),)),
    "bits of another dtype": (lambda x: (x * 2).view(torch.int32) + 1, (X,)),
    "median": (lambda x: torch.median(x, 1), (X,)),
    "inverse": (lambda x: torch.linalg.inv(x) * 2, (SQUARE,)),
    "one result of several": (lambda x: torch.linalg.qr(x)[1] + 1, (SQUARE,)),
    "max pooling": (lambda x: F.max_pool2d(x[None], 2) * 2, (torch.randn(3, 6, 6),)),
    "no elements": (lambda x: (x[:0] @ x.t(), torch.sort(x[:, :0])), (X[0],)),
    "as_strided of a map": (lambda x: (x * 2).as_strided((2, 3), (3, 1), 2), (X,)),
    "an argument without dimensions": (
        lambda x, y: torch.linspace(0, 1, 5) * y, (X, torch.tensor(2.0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_call(name: str) -> None:
    fn, args = CASES[name]
    lowered(fn, *args, calls=None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_sum_of_products_is_one_product(dtype: torch.dtype) -> None:
    """ATen's `addbmm` calls BLAS once per batch."""
    start, left, right = (torch.randint(-4, 4, s).to(dtype) for s in ((3,), (6, 2, 5), (6, 5, 3)))
    add = partial(torch.addbmm, beta=2, alpha=3)
    lowered(add, start, left, right, calls=("addmm",))


def test_random_numbers_are_those_of_eager() -> None:
    def draw(x: Any) -> Any:
        a = torch.rand_like(x)
        b = torch.bernoulli(a)
        return a * 2, b + torch.randn(4), F.dropout(x, 0.5)

    found = lowered(draw, X[0, 0, :4], calls=None)
    effects = [n.effect for n in found.graphs[0].nodes if isinstance(n, Call)]
    assert effects == [True] * 4


@torch.library.custom_op("tcw_tests::scale_", mutates_args={"x"})
def scale_(x: torch.Tensor, by: float) -> None:
    x.mul_(by)


@torch.library.custom_op("tcw_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_custom_operations() -> None:
    found = lowered(lambda x: twice(x.t() + 1).t() * 3, X[0], calls=("twice",))
    assert found.fallbacks() == ["no lowering for tcw_tests.twice.default"]


RARE: dict[str, Callable[..., torch.Tensor]] = {
    "special_airy_ai.default": lambda x, y: torch.special.airy_ai(x),
    "i0.default": lambda x, y: torch.i0(x),
    "special_i1e.default": lambda x, y: torch.special.i1e(x),
    "special_bessel_y1.default": lambda x, y: torch.special.bessel_y1(x),
    "special_scaled_modified_bessel_k0.default": (
        lambda x, y: torch.special.scaled_modified_bessel_k0(x)
    ),
    "special_modified_bessel_k0.default": lambda x, y: torch.special.modified_bessel_k0(x),
    "igammac.default": lambda x, y: torch.igammac(x, y),
    "special_hermite_polynomial_he.n_scalar": (
        lambda x, y: torch.special.hermite_polynomial_he(x, 3)
    ),
    "lgamma.default": lambda x, y: torch.lgamma(x),
    "digamma.default": lambda x, y: torch.digamma(x),
    "polygamma.default": lambda x, y: torch.polygamma(3, x),
    "special_zeta.default": lambda x, y: torch.special.zeta(x + 1, y),
    "erfinv.default": lambda x, y: torch.erfinv(x / 9),
    "special_erfcx.default": lambda x, y: torch.special.erfcx(x),
    "special_ndtri.default": lambda x, y: torch.special.ndtri(x / 9),
    "frexp.Tensor": lambda x, y: torch.frexp(x).mantissa,
    "nextafter.default": lambda x, y: torch.nextafter(x, y),
    "gcd.default": lambda x, y: torch.gcd((x * 9).long(), (y * 9).long()),
    "lcm.default": lambda x, y: torch.lcm((x * 9).long(), (y * 9).long()),
    "fractional_max_pool2d.default": lambda x, y: torch.ops.aten.fractional_max_pool2d(
        x[None], [2, 2], [2, 2], y[:1, None, :2] / 9
    )[0],
}
"""Operation -> the function that reaches it; special functions too rare for loops of our own."""


@pytest.mark.parametrize("name", RARE)
def test_rare_special_functions(name: str) -> None:
    x, y = X[0].abs() + 0.1, X[1].abs()
    found = lowered(lambda x, y: RARE[name](x * 2, y) + 1, x, y, calls=None)
    assert found.fallbacks() == [f"no lowering for aten.{name}"]
    kinds = found.kinds()
    assert (kinds[0], kinds.count("Call"), kinds[-1]) == ("Map", 1, "Map")


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (
            lambda x: torch.igamma(torch.tensor(1.5), x),
            ["aten.igamma.default", "aten.lgamma.default"],
        ),
        (torch.digamma, ["aten.digamma.default", "aten.polygamma.default"]),
        (torch.i0, ["aten.i0.default", "aten.special_i1.default"]),
        (torch.special.ndtri, ["aten.special_ndtri.default"]),
        (torch.lgamma, ["aten.lgamma.default", "aten.digamma.default"]),
        (torch.erfinv, ["aten.erfinv.default"] * 2),
    ],
)
def test_gradients_of_special_functions(
    function: Callable[[torch.Tensor], torch.Tensor], calls: list[str]
) -> None:
    """Autograd's operations around a call become loops."""
    x = torch.linspace(0.1, 0.9, 12).requires_grad_()
    assert lowered(function, x, calls=None).calls() == calls


def test_a_custom_operation_that_writes_its_argument() -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        scale_(y, 3.0)
        scale_(x, 2.0)
        return y + x

    lowered(both, X, calls=("scale_",))


def test_a_call_gets_the_strides_it_was_traced_with() -> None:
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    found = lowered(lambda x: torch.sort(x + 1), x, calls=("sort",))
    (call,) = [node for node in found.graphs[0].nodes if isinstance(node, Call)]
    (operand,) = call.operands()
    assert isinstance(operand, Operand)
    assert operand.strides == x.stride()


def test_sizes_that_depend_on_data_are_left_to_aten() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch._functorch.config.patch(fake_tensor_propagate_real_tensors=False):
        module = make_fx(lambda x: torch.nonzero(x) * 2, tracing_mode="symbolic")(torch.ones(3))
    with pytest.raises(Unsupported, match="contents of a tensor"):
        lower(module, "graph")


def test_gradients() -> None:
    def fn(x: torch.Tensor, w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        y = F.embedding(i, w)
        z = torch.cat([y[:, 1:], x.transpose(0, 1)[:, :2]], 1)
        z = F.pad(z, (1, 0)).flip(0)
        picked = z.gather(2, i[:, :1, None].expand(-1, -1, 2))
        return torch.stack([z.sum(-1).unfold(1, 2, 1).sum(), picked.sum(), z[i[:, :2] % 3].sum()])

    lowered(
        fn,
        torch.randn(4, 3, 5, requires_grad=True),
        torch.randn(7, 5, requires_grad=True),
        torch.tensor([[1, 2, 3, 4], [0, 4, 1, 1], [3, 3, 3, 3]]),
        calls=None,
    )


def test_sizes_as_arguments_and_as_numbers() -> None:
    seen: list[Graph] = []

    def backend(module: Any, inputs: Any) -> Any:
        from torch._dynamo.backends.common import aot_autograd

        from tcw.compiler.loops.interpreter import run_graph
        from tcw.compiler.loops.verifier import verify_graph
        from tcw.compiler.rewrites.decompositions import decompositions

        def compiler(module: Any, inputs: Any) -> Any:
            graph = lower(module, "graph")
            verify_graph(graph)
            seen.append(graph)
            return lambda *args: run_graph(graph, list(args))

        return aot_autograd(fw_compiler=compiler, decompositions=decompositions())(module, inputs)

    def fn(x: torch.Tensor, n: int) -> Any:
        half = x.shape[0] // 2
        wide = torch.full((int(x.shape[0] * 0.5),), n)
        ends = x[:, -n:], x[n:], x.reshape(-1)[: x.shape[0] - n]
        root = x / x.shape[1] ** 0.5
        return x[:half].repeat(n, 1) * n, x.shape[0] * n, x.view(half, -1), root, ends, wide

    torch._dynamo.reset()
    compiled = torch.compile(fn, backend=backend, dynamic=True, fullgraph=True)
    with torch.no_grad():
        for rows, n in ((6, 3), (8, 5)):
            x = torch.randn(rows, 5)
            torch.testing.assert_close(compiled(x, n), fn(x, n))
    assert seen[0].hints


@pytest.mark.parametrize(
    ("dtype", "tests", "calls"),
    [
        (torch.int8, 300, ("isin",)),
        (torch.int32, 300, ("isin",)),
        (torch.int32, 4, ()),
        (torch.float32, 300, ("sort", "searchsorted")),
    ],
)
def test_short_integers_are_sorted_by_aten(
    dtype: torch.dtype, tests: int, calls: tuple[str, ...]
) -> None:
    x = torch.arange(400).to(dtype)
    lowered(lambda x, y: ~torch.isin(x, y), x, x[:tests] * 2, calls=calls)


def test_no_lowering_is_beyond_reach() -> None:
    """Each is of an operation that a graph may hold after the engine's decompositions: torch's do
    not decline, ours may."""
    from tcw.compiler.lowering.registry import LOWERINGS, load_families
    from tcw.compiler.rewrites import decompositions as table

    load_families()
    always = {
        operation
        for operation, decomposition in table.decompositions(True).items()
        if operation in table.decompositions(False) and decomposition.__module__ != table.__name__
    }
    unreached = []
    for name in LOWERINGS:
        namespace, _, operation = name.partition(".")
        if namespace != "prims":
            namespace, operation = "aten", name
        packet, _, overload = operation.partition(".")
        known = getattr(getattr(torch.ops, namespace), packet)
        overloads = [overload] if overload else known.overloads()
        if {getattr(known, one) for one in overloads if "out" not in one} <= always:
            unreached.append(name)
    assert unreached == []
