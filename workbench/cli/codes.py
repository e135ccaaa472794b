"""Exit codes of every verb."""

OK = 0
FINDING = 1
"""Something was found that the user asked to be told about."""
USAGE = 2
MODEL_FAILED = 3
"""The user's file or model failed: an exception, a crash, the time was up."""
INTERNAL = 4
"""A fault of tcw."""
REFUSED = 5
"""An override asks for what a rule forbids; the rest was done."""
UNWRITTEN = 6
"""All went well, but stdout or a file that was asked for could not be written."""
MACHINE = 7
"""The machine is the cause: a full disk, a limit, no C++ compiler."""
INTERRUPTED = 130
"""Ctrl-C, SIGTERM or SIGHUP."""


def unwritten(code: int) -> int:
    """The code of a run that would end with `code`, had all its output been written."""
    return UNWRITTEN if code == OK else code
