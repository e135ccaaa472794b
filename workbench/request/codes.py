"""Exit codes of every verb."""

OK = 0
FINDING = 1
"""A finding that the user asked the command to fail on."""
USAGE = 2
MODEL_FAILED = 3
"""The user's file or model failed: an exception, a crash or a timeout."""
INTERNAL = 4
"""An error in tcw itself."""
REFUSED = 5
"""An override was refused because a rule forbids it; everything else was done."""
UNWRITTEN = 6
"""The run succeeded, but stdout or a requested file could not be written."""
MACHINE = 7
"""The machine is the cause: a full disk, a limit, no C++ compiler."""
INTERRUPTED = 130
"""Ctrl-C, SIGTERM or SIGHUP."""


def unwritten(code: int) -> int:
    """The exit code after lost output, for a run that would otherwise exit with `code`."""
    return UNWRITTEN if code == OK else code
