"""Names of functions as Dynamo makes them: what it compiles after a graph break has a name of its
own, `torch_dynamo_resume_in_forward_at_26`."""

from __future__ import annotations

import re

_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d{1,9})$")


def user_name(name: str) -> str:
    """`torch_dynamo_resume_in_forward_at_26` -> `forward`."""
    while match := _RESUME.match(name):
        name = match["function"]
    return name


def resumes_at(name: str) -> int | None:
    """The line at which a resume function continues; None for another function."""
    match = _RESUME.match(name)
    return int(match["line"]) if match else None
