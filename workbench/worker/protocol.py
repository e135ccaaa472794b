"""What the front end sends to the worker. No torch."""

from __future__ import annotations

import os
import signal

import msgspec

from tcw.compiler.protocol.commands import Rerun
from tcw.compiler.trace.records import Part, Settings
from tcw.compiler.trace.writer import clean

DUMP_SIGNAL = signal.SIGRTMAX - 2
"""Makes the worker's main thread write where it is; a signal that programs do not use."""


def plain(settings: Settings) -> Settings:
    """The settings with names that JSON can carry."""
    return msgspec.structs.replace(
        settings,
        file=clean(settings.file),
        arguments=tuple(clean(argument) for argument in settings.arguments),
    )


class Job(Part):
    """The first line of the command pipe."""

    settings: Settings
    started: float
    """Start of the recording on the monotonic clock, which all processes share."""
    file: bytes
    """The file's name as the system has it: JSON cannot carry a name that is not UTF-8."""
    arguments: tuple[bytes, ...]
    driven: bool = False
    """Whether a person drives it: then it waits before its first step, and takes commands."""
    first_run: int = 1
    """The number of its first run, if it is driven."""
    tries: bool = False
    """Whether fixes may be tried after it: then a process is kept for them."""
    rerun: Rerun | None = None
    """The run that was requested, if the worker of an earlier run is gone."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        started: float,
        *,
        driven: bool = False,
        first_run: int = 1,
        rerun: Rerun | None = None,
        tries: bool = False,
    ) -> Job:
        """The job of recording with these settings."""
        return cls(
            settings=plain(settings),
            started=started,
            file=os.fsencode(settings.file),
            arguments=tuple(os.fsencode(argument) for argument in settings.arguments),
            driven=driven,
            first_run=first_run,
            tries=tries,
            rerun=rerun and msgspec.structs.replace(rerun, settings=plain(rerun.settings)),
        )

    def exact_settings(self) -> Settings:
        """The settings with the names as the system has them."""
        return msgspec.structs.replace(
            self.settings,
            file=os.fsdecode(self.file),
            arguments=tuple(os.fsdecode(argument) for argument in self.arguments),
        )
