"""The commands: one file a verb, imported when it is used; its docstring is its help."""

from __future__ import annotations

import sys


def run(arguments: list[str] | None = None) -> None:
    """The `tcw` command; ends the process with one of the codes in `workbench.cli.codes`."""
    from workbench.cli.main import main

    sys.exit(main(sys.argv[1:] if arguments is None else arguments))
