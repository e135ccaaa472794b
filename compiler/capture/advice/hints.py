"""torch's own hints: a setting that one names is a fix to try."""

from __future__ import annotations

import re

from tcw.compiler.capture.advice.broken import Broken
from tcw.compiler.protocol.torch_settings import DEFAULT_MODULE, TorchSetting
from tcw.compiler.trace.records import Advice

_NAMED = re.compile(r"(?:\bconfig\.|`)(\w+_\w+)")
"""A setting as hints write it: `torch._dynamo.config.NAME`, or the name alone in backticks."""

BOILERPLATE = (
    "It may be possible to write Dynamo tracing rules",
    "This graph break may be difficult to debug",
    "This graph break is fundamental",
    "This is likely to be a Dynamo bug",
    "This graph break may have been caused by an earlier graph break",
    "Please report an issue to PyTorch",
    "Please file an issue",
    "File an issue to PyTorch",
)
"""Prefixes of torch's hints that suggest nothing to change in the user's code."""


def hints(broken: Broken) -> tuple[Advice, ...]:
    """torch's hints, useful ones first, each with the setting that it names."""
    ordered = sorted(broken.hints, key=lambda hint: hint.startswith(BOILERPLATE))
    return tuple(Advice(text=hint, by="torch", code=_setting(hint)) for hint in ordered)


def _setting(hint: str) -> str:
    """The other value of the first switch of Dynamo that a hint names; "" if it names none."""
    from torch._dynamo import config

    for name in _NAMED.findall(hint):
        value = getattr(config, name, None)
        if isinstance(value, bool):
            return TorchSetting(DEFAULT_MODULE, name, not value).code
    return ""
