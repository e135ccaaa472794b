"""Whether the code being generated is for a GPU that is not present.

A shadow compile runs stock Inductor for another device, while execution stays on the real one. It
sets `predicting`; every hook here then uses separate ids and marks its records as predicted.
"""

from __future__ import annotations

from contextvars import ContextVar

predicting: ContextVar[str] = ContextVar("predicting", default="")
"""The architecture that a shadow compile generates code for (`sm_90`); "" outside one."""
