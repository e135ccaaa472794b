"""NumPy functions without a counterpart in torch, random numbers above all."""

from __future__ import annotations

import re

from tcw.compiler.capture.advice.broken import Advised, Broken

_FUNCTION = re.compile(r"^numpy function: (?:<[^>]*?)?(?:\bmethod |\bfunction )?(?P<name>[\w.]+)")

RANDOM = {
    "rand": "torch.rand",
    "random": "torch.rand",
    "random_sample": "torch.rand",
    "uniform": "torch.rand",
    "randn": "torch.randn",
    "standard_normal": "torch.randn",
    "normal": "torch.randn",
    "randint": "torch.randint",
    "integers": "torch.randint",
    "permutation": "torch.randperm",
    "shuffle": "torch.randperm",
    "choice": "torch.multinomial",
}


def advise(broken: Broken) -> Advised:
    source = f"{broken.context} {broken.expression}".lower()
    if "numpy" not in broken.type.lower() and not broken.context.startswith("numpy function"):
        if "numpy.random" not in source and "np.random" not in source:
            return ()
    elif "randomstate" not in source and ".random" not in source:
        return (
            "Use torch functions on the tensor, or call it outside the compiled function"
            " and pass the result in: torch has no counterpart for it"
        )
    match = _FUNCTION.match(broken.context)
    name = (match["name"] if match else "").rpartition(".")[2] or _last_name(broken.expression)
    counterpart = RANDOM.get(name)
    better = counterpart or "torch's generators"
    return (
        f"Draw with {better} inside the graph (from torch's seed, so the values differ),"
        " or pass the numbers in: NumPy draws them on the host"
    )


def _last_name(expression: str) -> str:
    return expression.split("(")[-2 if expression.count("(") > 1 else 0].rpartition(".")[2]
