"""Functions that break the graph, a kind each. A comment says what breaks on which line."""

# ruff: noqa: RET504, RET505, SIM108
# they show what users write

from __future__ import annotations

import logging
import math
import random
import time
import uuid
import warnings

import numpy as np
import torch

log = logging.getLogger("breaking")


def branch_clamp(x):
    h = x.relu()
    if h.abs().max() > 8:  # break: h.abs().max() > 8
        h = h.clamp(-8, 8)
    return h + 1


def branch_assign(x):
    h = x.relu()
    if h.mean() > 0.5:  # break: h.mean() > 0.5
        h = h * 0.5
    else:
        h = h * 2
    return h + 1


def branch_on_item(x):
    h = x.relu()
    if h.mean().item() > 0.5:  # break: h.mean().item()
        h = h * 0.5
    return h + 1


def branch_on_float(x):
    h = x.relu()
    return h + 1 if float(h.sum()) > 0 else h * 2  # break: float(h.sum())


def branch_on_item_later(x):
    h = x.relu()
    n = h.mean().item()  # break: h.mean().item()
    if n > 0.5:
        h = h * 0.5
    return h + 1


def branch_on_numpy(x):
    h = x.relu()
    if np.lcm(2, 3) > 4:  # break: np.lcm(2, 3) > 4
        h = h * 2
    return h + 1


def branch_return(x):
    h = x.relu()
    if h.sum():  # break: h.sum()
        return h * 2
    else:
        return h * 3


def branch_expression(x):
    y = x + 1
    return (y * 2 if y.sum() > 0 else y * 3) + 1  # break: y.sum() > 0


def branch_on_and(x):
    y = x + 1
    if y.sum() > 0 and y.min() > -1:  # break: y.sum() > 0 | y.min() > -1
        y = y * 2
    return y


def branch_in_loop(x):
    for _ in range(2):
        x = x * 2
        if x.sum() > 0:  # break: x.sum() > 0
            x = x + 1
    return x


def while_loop(x):
    y = x + 1
    while y.sum() < 100:  # break: y.sum() < 100
        y = y * 2
    return y


def prints(x):
    y = x + 1
    print("shape", tuple(x.shape))  # break: print("shape", tuple(x.shape))
    return y * 2


def prints_in_loop(x):
    out = []
    for number in range(3):
        x = x + 1
        print(number)  # break: print(number)
        out.append(x)
    return out


def prints_wide(x):
    ä = x + 1; print("ü")  # break: print("ü")  # fmt: skip  # noqa: E702
    return ä * 2


def prints_with_keyword(x):
    y = x + 1
    print("shape", 3, sep=":")  # break: print("shape", 3, sep=":")
    return y * 2


def warns(x):
    y = x + 1
    warnings.warn("careful")  # break: warnings.warn("careful")  # noqa: B028
    return y * 2


def logs(x):
    y = x + 1
    log.warning("here")  # break: log.warning("here")
    return y * 2


def numpy_random(x):
    y = x + 1
    np.random.permutation(4)  # break: np.random.permutation(4)
    return y * 2


def item(x):
    y = x + 1
    n = y.sum().item()  # break: y.sum().item()
    return y * n


def to_int(x):
    y = x + 1
    n = int(y.sum())  # break: int(y.sum())
    return y * n


def tolist(x):
    y = x + 1
    n = y.tolist()  # break: y.tolist()
    return y * n[0][0]


def nonzero(x):
    y = x + 1
    return torch.nonzero(y) + 1  # break: torch.nonzero(y)


def branch_on_size(x):
    y = x.relu()
    found = torch.nonzero(y)  # break: torch.nonzero(y)
    y = y + 1
    if found.shape[0] > 2:
        y = y * len(found)
    return y + 1


def branch_on_masked(x):
    kept = x[x > 1]  # break: x[x > 1]
    if not len(kept):
        return x + 1
    return x * kept.mean()


def branch_on_capture(x):
    """Breaks at the branch if torch captures the size."""
    kept = x[x > 1]  # break: x[x > 1]
    count = kept.numel()
    if not count > 2:
        return x + 1
    else:
        return x * 2


def masked(x):
    y = x + 1
    return y[y > 0] * 2  # break: y[y > 0]


def explicit(x):
    y = x + 1
    torch._dynamo.graph_break()  # break: torch._dynamo.graph_break()
    return y * 2


@torch.compiler.disable
def disabled(x):
    return x * 3


def calls_disabled(x):
    y = x + 1
    z = disabled(y)  # break: disabled(y)
    return z + 1


def on_the_stack(x):
    y = x + 1
    return y.sin() + (y.cos() * disabled(y))  # break: disabled(y)


def evaluates(x):
    y = x + 1
    exec("q = 1")  # break: exec("q = 1")
    return y * 2


def opens(x):
    y = x + 1
    open("/dev/null")  # noqa: SIM115  # break: open("/dev/null")
    return y * 2


def saves(x):
    y = x + 1
    torch.save(y, "/dev/null")  # break: torch.save(y, "/dev/null")
    return y * 2


def times(x):
    y = x + 1
    t = time.time()  # break: time.time()
    return y * 2, t


def in_try(x):
    y = x + 1
    y = y * 2
    try:
        print("in try")  # break: print("in try")
    finally:
        y = y + 1
    return y


def under_no_grad(x):
    y = x + 1
    with torch.no_grad():
        z = y * 2
        print("inside")  # break: print("inside")
        z = z + y
    return z


def closure(x):
    k = x * 2
    again = lambda: k + 1  # noqa: E731
    print("made")  # break: print("made")
    return again() + x


def helper(x):
    z = x * 2
    print("inlined")  # break: print("inlined")
    return z + 1


def inlines(x):
    y = x + 1
    return helper(y) * 3 + y


def two_breaks(x):
    y = x + 1
    print(1)  # break: print(1)
    z = y * 2
    print(2)  # break: print(2)
    return y + z


def over_lines(x):
    y = x + 1
    print(  # break: print(
        "a",
        y.shape,
    )
    return y * 2


def branch_raise(x):
    h = x.relu()
    if torch.isnan(h).any():  # break: torch.isnan(h).any()
        raise ValueError("nan")
    return h + 1


def square_root(x):
    y = x.abs() + 1
    return y * math.sqrt(y.sum())  # break: math.sqrt(y.sum())


def numpy_number(x):
    y = x + 1
    return y * float(np.random.normal())  # break: float(np.random.normal()) | np.random.normal()


def logs_module(x):
    y = x + 1
    logging.info("here")  # break: logging.info("here")
    return y * 2


def python_random(x):
    y = x + 1
    return y * random.choice([1, 2])  # break: random.choice([1, 2])


def makes_text(x):
    y = x + 1
    text = str(y)  # break: str(y)
    return y * 2, text


def makes_id(x):
    y = x + 1
    uuid.uuid4()  # break: uuid.uuid4()
    return y * 2


KINDS = [
    prints_with_keyword,
    branch_raise,
    square_root,
    numpy_number,
    logs_module,
    python_random,
    makes_text,
    makes_id,
    branch_clamp,
    branch_assign,
    branch_on_item,
    branch_on_float,
    branch_on_item_later,
    branch_on_numpy,
    branch_return,
    branch_expression,
    branch_on_and,
    branch_in_loop,
    while_loop,
    prints,
    prints_in_loop,
    prints_wide,
    warns,
    logs,
    numpy_random,
    item,
    to_int,
    tolist,
    nonzero,
    branch_on_size,
    branch_on_masked,
    branch_on_capture,
    masked,
    explicit,
    calls_disabled,
    on_the_stack,
    evaluates,
    opens,
    saves,
    times,
    in_try,
    under_no_grad,
    closure,
    inlines,
    two_breaks,
    over_lines,
]


def marked() -> dict[int, list[str]]:
    """Line -> sources of the instructions that break there."""
    with open(__file__, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    return {
        number: line.split("# break: ")[1].split("  #")[0].rstrip().split(" | ")
        for number, line in enumerate(lines, 1)
        if "# break: " in line and "split(" not in line and '"# break' not in line
    }
