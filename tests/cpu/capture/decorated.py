"""A decorator of methods, as the forwards of transformers have one."""

from __future__ import annotations

import functools
from typing import Any


def passing(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    return wrapper
