"""The program that the user runs: the commands, the worker process, the terminal workbench."""

import os
import sys

DOOR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
"""What our child processes start from, in any Python: tcw/__main__.py."""


def own_command(*words: str, python: str = "") -> list[str]:
    """The command line of a child process of ours. `python`: its interpreter, "" for this one."""
    return [python or sys.executable, "-P", DOOR, *words]
