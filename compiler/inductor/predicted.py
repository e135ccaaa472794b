"""Whether the code being generated is for a GPU that is not there.

A shadow compile runs stock Inductor for another device while execution stays where it is. It sets
`predicting`; every hook here then records under ids of its own, marked as predicted.
"""

from __future__ import annotations

from contextvars import ContextVar

predicting: ContextVar[str] = ContextVar("predicting", default="")
"""The architecture that a shadow compile generates code for (`sm_90`); "" outside of one."""
