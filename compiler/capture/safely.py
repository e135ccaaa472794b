"""The one place where an error of ours, made while recording, ends: a `Warned` record."""

from __future__ import annotations

from types import TracebackType
from weakref import WeakKeyDictionary

from compiler.control.recorder import Recorder
from compiler.trace.records import Warned
from compiler.trace.writer import TraceWriter

_said: WeakKeyDictionary[TraceWriter, set[tuple[str, str]]] = WeakKeyDictionary()


def report(recorder: Recorder, doing: str, error: BaseException) -> None:
    """Record that `doing` failed, once for each kind of error."""
    said = _said.setdefault(recorder.writer, set())
    key = (doing, type(error).__name__)
    if key in said:
        return
    said.add(key)
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in {place.tb_frame.f_code.co_name}" if place is not None else ""
    recorder.emit(
        Warned(message=f"{doing} was not recorded: {type(error).__name__}{where}: {error}"[:400])
    )


class safely:
    """`with safely(recorder, "a graph break"):` torch goes on whatever happens inside."""

    def __init__(self, recorder: Recorder, doing: str) -> None:
        self.recorder = recorder
        self.doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        report(self.recorder, self.doing, error)
        return True
