"""The commands: one file a verb, imported when it is used; its docstring is its help."""

from __future__ import annotations

import sys


def run(arguments: list[str] | None = None) -> None:
    """The `tcw` command; ends the process with one of the codes in `workbench.cli.codes`."""
    from workbench.cli import codes
    from workbench.cli.output import Standard, say

    standard = Standard()
    from workbench.cli.main import main

    code = main(sys.argv[1:] if arguments is None else arguments)
    if why := standard.lost():
        say(f"stdout could not be written: {why}")
        code = codes.unwritten(code)
    sys.exit(code)
