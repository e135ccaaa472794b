"""The commands: one file per verb, imported on first use. Its docstring is its help text."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import NoReturn


def run(arguments: list[str] | None = None) -> None:
    """The `tcw` command; exits with one of the codes in `tcw.workbench.request.codes`."""
    # -W and PYTHONWARNINGS apply to the user's program, which runs in the worker.
    warnings.simplefilter("ignore")
    end_like_ctrl_c()
    from tcw.workbench.request import codes
    from tcw.workbench.request.messages import Standard, say

    standard = Standard()
    from tcw.workbench.cli.main import main

    code = main(sys.argv[1:] if arguments is None else arguments)
    if why := standard.lost():
        say(f"stdout could not be written: {why}")
        code = codes.unwritten(code)
    sys.exit(code)


ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end tcw like ctrl-c: the recording is completed and nothing is left behind."""


def end_like_ctrl_c() -> None:
    """Make the signals in `ENDING` raise KeyboardInterrupt; under nohup SIGHUP stays ignored."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
