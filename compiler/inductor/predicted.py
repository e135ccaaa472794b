"""Whether Inductor is compiling for real, or generating code for a GPU that is not there."""

from __future__ import annotations

from contextvars import ContextVar

predicting: ContextVar[str] = ContextVar("predicting", default="")
"""The architecture (`sm_90`) while code for it is being predicted; "" in a real compile."""
