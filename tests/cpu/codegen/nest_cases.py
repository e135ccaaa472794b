"""Functions whose graphs need every form of loop nest, at sizes that are no whole vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def floats(dtype: torch.dtype) -> dict[str, Case]:
    """Rows, columns, full reductions, transposes, scans in one floating dtype."""

    def r(*shape: int) -> torch.Tensor:
        return torch.randn(*shape).to(dtype)

    return {
        "pointwise": (lambda x: F.gelu(x) * torch.tanh(x), (r(1001),)),
        "softmax": (lambda x: torch.softmax(x, -1), (r(37, 19),)),
        "softmax of columns": (lambda x: torch.softmax(x, 0), (r(37, 19),)),
        "layer norm": (lambda x: F.layer_norm(x, (333,)), (r(5, 333),)),
        "batch norm": (lambda x, w: F.batch_norm(x, None, None, w, w, True), (r(4, 6, 7, 9), r(6))),
        "variance": (lambda x: x.var(-1) + x.mean(-1), (r(9, 45),)),
        "sum": (lambda x: x.sum(), (r(40, 333),)),
        "long sum": (lambda x: x.sum(), (r(400, 333),)),
        "middle sum": (lambda x: x.sum(1), (r(7, 9, 21),)),
        "outer and inner sum": (lambda x: x.sum((0, 2)), (r(7, 9, 21),)),
        "long column sums": (lambda x: (x.sum(0), x.amax(0)), (r(3000, 70),)),
        "over its sum": (lambda x: x.abs() / x.abs().sum(), (r(90, 450),)),
        "maxima": (lambda x: (x.amax(-1), x.amin(0), x.amax()), (r(9, 45),)),
        "argmax": (lambda x: (x.argmax(-1), x.argmin(0), x.argmax()), (r(9, 45),)),
        "argmax_bool": (lambda x: ((x > 1).max(-1).indices, (x > -1).min(-1).indices), (r(9, 45),)),
        "transposed": (lambda x, y: x + y.t(), (r(37, 53), r(53, 37))),
        "permuted": (lambda x, y: x + y.permute(2, 0, 1), (r(3, 37, 53), r(37, 53, 3))),
        "transposed, pages apart": (lambda x, y: x + y.t(), (r(37, 1024), r(1024, 37))),
        "two transposed, pages apart": (
            lambda x, y, z: x * y.t() + z.t(),
            (r(77, 1024)[:, :301], r(301, 77), r(301, 77)),
        ),
        "transposed results": (
            lambda x: ((x[1:] - x[:-1]).t().contiguous(), (x[1:] + x[:-1]).t().contiguous()),
            (r(71, 301),),
        ),
        "permuted results": (
            lambda x: (x[:, 1:] - x[:, :-1]).permute(0, 2, 1).contiguous(),
            (r(2, 65, 48),),
        ),
        "cumulative sum": (lambda x: x.cumsum(-1), (r(9, 45),)),
        "cumulative sum of columns": (lambda x: x.cumsum(0), (r(45, 9),)),
        "cat": (lambda x, y: torch.cat((x, y * 2), 1), (r(5, 7), r(5, 20))),
        "flip": (lambda x: x.flip(0, 1) + 1, (r(5, 37),)),
        "roll": (lambda x: torch.roll(x, 3, 1) * 2, (r(5, 37),)),
        "nan": (lambda x: (x.log().amax(1), x.log().amin(0), x.sqrt().softmax(-1)), (r(9, 45),)),
        "interleaved": (
            lambda x, y: [
                torch.stack([x, y, x + y, x - y, -x, -y, x][:n], -1) for n in (2, 5, 6, 7)
            ],
            (r(9, 45), r(9, 45)),
        ),
        "interleaved with themselves": (
            lambda x: [torch.stack([x] * n, -1) for n in (3, 5, 6, 7, 8)],
            (r(9, 45),),
        ),
        **chosen(r(9, 45)),
    }


def integers(dtype: torch.dtype) -> dict[str, Case]:
    """Arithmetic, reductions, divisions in one integer dtype."""
    x = torch.randint(0, 100, (5, 37)).to(dtype)
    y = torch.randint(1, 9, (5, 37)).to(dtype)
    return {
        "arithmetic": (lambda x, y: x * y + 3, (x, y)),
        "reductions": (lambda x: (x.sum(), x.sum(0), x.sum(1), x.amax(1)), (x,)),
        "division": (lambda x, y: (x // y, x % y), (x, y)),
        "cumulative sum": (lambda x: x.cumsum(1), (x,)),
        "conversions": (lambda x: (x.float() * 0.5, x > 50, x.double()), (x,)),
        **chosen(x),
    }


def chosen(x: torch.Tensor) -> dict[str, Case]:
    """Elements of a matrix by contiguous indices, some of them negative."""
    rows, columns = x.shape
    j = torch.randint(-columns, columns, (77,))
    j[:32] %= columns
    i = torch.randint(rows, (7, columns))
    return {
        "columns": (lambda x, j: (x[:, j], x[:, j].t().contiguous()), (x, j)),
        "columns, moved": (lambda x, j: x[:, j] + x[0, j], (x, j)),
        "along columns": (lambda x, i: x.gather(0, i), (x, i)),
        "along rows": (lambda x, i: x.gather(1, i), (x, i[:rows])),
    }


def windows(dtype: torch.dtype) -> dict[str, Case]:
    """Windows inside and over the border, near and far apart, by columns and by channels."""
    x = torch.randn(2, 3, 11, 45).to(dtype)
    last = torch.randn(2, 37, 9, 11).to(dtype).to(memory_format=torch.channels_last)
    image = x.clone()
    x[0, 1, 0, 0], x[1, 2, 10, 44], x[0, 2, 5, 15] = math.nan, math.inf, math.nan
    found: dict[str, Case] = {}
    for kernel, stride, padding, dilation, up in (
        (2, 2, 0, 1, False),
        (3, 1, 1, 1, False),
        (3, 2, 1, 1, False),
        ((3, 5), (1, 3), (1, 2), 1, False),
        ((1, 4), (1, 4), (0, 2), 1, True),
        (3, (2, 5), 1, (1, 2), True),
        ((2, 9), (1, 9), (1, 4), 1, False),
    ):

        def greatest(
            x: torch.Tensor,
            k: Any = kernel,
            s: Any = stride,
            p: Any = padding,
            d: Any = dilation,
            up: bool = up,
        ) -> torch.Tensor:
            return F.max_pool2d(x, k, s, p, d, up)

        def mean(
            x: torch.Tensor, k: Any = kernel, s: Any = stride, p: Any = padding, up: bool = up
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return F.avg_pool2d(x, k, s, p, up), F.avg_pool2d(x, k, s, p, up, False)

        name = f"{kernel} {stride} {padding} {dilation}"
        found[f"max pool {name}"] = greatest, (x,)
        found[f"max pool of channels {name}"] = greatest, (last,)
        found[f"average pool {name}"] = mean, (x,)
        found[f"average pool of channels {name}"] = mean, (last,)
    for factor in (2, 4, 0.5, 3):
        for mode in ("nearest", "bilinear"):

            def resized(x: torch.Tensor, f: float = factor, m: str = mode) -> torch.Tensor:
                return F.interpolate(x, scale_factor=f, mode=m)

            found[f"{mode} {factor}"] = resized, (image,)
            found[f"{mode} {factor} of channels"] = resized, (last,)
    found["repeated, clamped"] = lambda x: x[..., (torch.arange(101) // 2 - 3).clamp(1, 43)], (x,)
    found["unfold"] = lambda x: F.unfold(x, 3, 1, 1, 1), (x,)
    found["unfold, far"] = lambda x: F.unfold(x, (2, 3), (1, 4), (0, 3), (2, 3)), (x,)
    found["unfold, inside"] = lambda x: F.unfold(x, (2, 3), stride=(1, 2)) + 1, (x,)
    return found


def odd_rows(size: int) -> torch.Tensor:
    """What a sum of exponentials has to come through: NaN, infinities, an ascending row."""
    x = torch.randn(9, size)
    x[0, 5] = math.nan
    x[1, 7] = math.inf
    x[2] = -math.inf
    x[3, : size // 2] = -math.inf
    x[4], x[5] = 3e38, -3e38
    x[6, 0], x[6, -1] = math.nan, math.inf
    x[7] = x[7].sort().values * 30
    return x


def maximum_too(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    top = x.amax(-1, keepdim=True)
    return top, (x - top).exp().sum(-1)


def mixed() -> dict[str, Case]:
    """Masks, indices, scatters, views, sizes of one and zero."""
    r = torch.randn

    def i(n: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, n, shape)

    places = torch.stack([torch.randperm(30)[:7] for _ in range(50)])
    a, b = r(9, 45) > 0, r(9, 45) > 0
    mask = torch.triu(torch.ones(20, 20, dtype=torch.bool), 1)
    images = r(8, 20, 30, 30).to(memory_format=torch.channels_last)
    return {
        "bool": (lambda x, y: (x & y, x | ~y, x.any(), x.all(1), (x ^ y).sum()), (a, b)),
        "narrowed": (
            lambda x, y: (x.float().sin(), y.float() * 2, y.bfloat16() + 1, x.float().flip(1)),
            (i(99, 9, 45), r(9, 45).double()),
        ),
        "where": (lambda m, x: torch.where(m, x, 0.0), (a, r(9, 45))),
        "masked": (lambda x, m: x.masked_fill(m, -1e9).softmax(-1), (r(4, 20, 20), mask)),
        "embedding": (lambda w, i: F.embedding(i, w) * 2, (r(50, 33), i(50, 4, 7))),
        "index": (lambda x, i: x[i] + 1, (r(50, 3), i(50, 17) - 25)),
        "two indices": (lambda x, i, j: x[i, j] * 2, (r(50, 30, 3), i(50, 17), i(30, 17))),
        "gather": (lambda x, i: x.gather(1, i) * 2, (r(50, 30), i(30, 50, 7))),
        "scatter": (lambda x, i, y: x.scatter(1, i, y), (r(50, 30), places, r(50, 7))),
        "scatter add": (
            lambda x, i, y: x.scatter_add(1, i, y),
            (r(50, 30), i(30, 50, 7), r(50, 7)),
        ),
        "scatter of products and extremes": (
            lambda x, i, y: [x.scatter_reduce(1, i, y, r) for r in ("prod", "amax", "amin")],
            (r(50, 30), i(30, 50, 7), r(50, 7)),
        ),
        "rows of extremes": (
            lambda x, i, y: x.index_reduce(0, i, y, "amax"),
            (r(50, 300), i(50, 77), r(77, 300)),
        ),
        "extremes of integers": (
            lambda x, i, y: x.scatter_reduce(0, i, y, "amin", include_self=False),
            (i(99, 50, 7), i(50, 30, 7), i(99, 30, 7)),
        ),
        "index add": (
            lambda x, i, y: x.index_put((i,), y, accumulate=True),
            (r(50, 30), i(50, 77), r(77, 30)),
        ),
        "arange": (lambda x: x + torch.arange(37, device=x.device), (r(5, 37),)),
        "one hot": (lambda x: F.one_hot(x, 7), (i(7, 21),)),
        "one hot, short rows": (
            lambda i, x: [
                torch.zeros(77, n, device=x.device).to(x.dtype).scatter(1, i % n, x).view(7, 11, n)
                for n in (2, 3, 5)
            ],
            (i(30, 77, 1), r(77, 1)),
        ),
        "one hot, short rows of 16 bits": (
            lambda i, x: torch.full((77, 4), 0.5, dtype=x.dtype, device=x.device).scatter(1, i, x),
            (i(4, 77, 1), r(77, 4).bfloat16()),
        ),
        "cross entropy": (F.cross_entropy, (r(512, 701), i(701, 512))),
        "pad": (lambda x: F.pad(x, (2, 3, 1, 1)), (r(5, 7),)),
        "reverse scan": (lambda x: x.flip(1).cumsum(1).flip(1), (r(5, 37),)),
        "product": (lambda x: (x.prod(1), x.cumprod(1)), (r(5, 37),)),
        "empty": (lambda x: (x + 1, x.sum(0), x.sum(1), x.sum()), (r(0, 5),)),
        "one element": (lambda x: (x + 1, x.sum()), (r(1),)),
        "scalar": (lambda x: x * 2, (r(()),)),
        "chain of views": (
            lambda x: x.t().reshape(-1)[:100].reshape(20, 5).t() + 1,
            (r(15, 14),),
        ),
        "group norm": (lambda x, w: F.group_norm(x, 2, w, w), (r(3, 8, 5, 7), r(8))),
        "channels-last batch norm": (
            lambda x, w: F.batch_norm(x, None, None, w, w, True).relu(),
            (images, r(20)),
        ),
        "channels-last with statistics": (
            lambda x, m: F.batch_norm(x, m, m.abs(), m, m, False).relu(),
            (images, r(20)),
        ),
        "standardised": (lambda x: (x - x.mean()) / x.std(), (r(300, 700),)),
        "log of a sum": (lambda x: x.logsumexp(0), (r(300, 70),)),
        "a row longer than L1": (lambda x: torch.softmax(x * 2, -1), (r(3, 40013),)),
        "an online sum": (lambda x: x.log_softmax(-1), (r(3, 5003),)),
        "an online sum of 16 bits": (lambda x: x.log_softmax(-1), (r(3, 4096).bfloat16(),)),
        "online sums of odd rows": (lambda x: x.log_softmax(-1), (odd_rows(2500),)),
        "a far row": (lambda x: (x * 2).softmax(-1), (r(4, (1 << 18) + 5),)),
        "a maximum that is read too": (maximum_too, (odd_rows(2500),)),
        "short rows": (lambda x: (x.sum(-1), x.softmax(-1)), (r(500, 3),)),
    }
