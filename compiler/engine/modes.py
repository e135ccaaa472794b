"""What the modes of `torch.compile(…, mode=…)` ask of this backend.

torch/_inductor/__init__.py, list_mode_options, has their names and meanings.
"""

from __future__ import annotations

from typing import NamedTuple

CUDA_GRAPHS = "triton.cudagraphs"
"""Inductor's name in `options`."""


class Mode(NamedTuple):
    """What a graph is compiled for besides its target."""

    tuned: bool = False
    """A GPU's tiles are the fastest of a few, measured."""
    cuda_graphs: bool = False
    """Graphs are replayed as CUDA graphs if possible."""


DEFAULT = Mode()
MODES = {
    "default": DEFAULT,
    "lite": DEFAULT,
    "reduce-overhead": Mode(cuda_graphs=True),
    "max-autotune": Mode(tuned=True, cuda_graphs=True),
    "max-autotune-no-cudagraphs": Mode(tuned=True),
}
