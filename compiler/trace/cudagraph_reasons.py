"""torch's messages about CUDA graphs, taken apart: the reason, the inputs, the stack."""

from __future__ import annotations

import re

_PREFIXES = (
    "skipping cudagraphs due to ",
    "skipping cudagraph due to ",
    "disabling cudagraphs due to ",
)
STACK = "Found from"
"""What comes before the stack of an operation in a message."""
_INPUT_STACK = "input stack trace:"
_MOVED = re.compile(r"input name: (\S+?)\. ")
_INPUTS = re.compile(r"\.?\s*input name: .*", re.DOTALL)
_MOST_INPUTS = 100
NO_GPU = "nothing of the graph runs on a GPU"
_NO_DEVICES = re.compile(r"multiple devices:\s*$")
"""torch's words for a graph that runs on no GPU, whose mention of the CPU it leaves out."""


def reason_of(message: str) -> str:
    """`mutated inputs (1 instances)`: without what all reasons begin with, addresses, and the
    stack."""
    reason = _INPUTS.sub("", message.partition(STACK)[0]).strip()
    for prefix in _PREFIXES * 2:  # torch puts it before some reasons twice
        reason = reason.removeprefix(prefix)
    if _NO_DEVICES.match(reason):
        return NO_GPU
    return " ".join(reason.rstrip(".: ").split()) or message.strip()


def stack_of(message: str) -> str:
    """The message with each stack on lines of its own, to be read for its frames."""
    for mark in (STACK, _INPUT_STACK):
        message = message.replace(mark, f"\n{mark}\n")
    return message


def moved_inputs(message: str) -> tuple[str, ...]:
    """The inputs whose addresses have changed, by their names in the graph."""
    return tuple(dict.fromkeys(_MOVED.findall(message)))[:_MOST_INPUTS]
