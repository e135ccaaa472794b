"""The stages in order, on one screen: the hooks that record each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tcw.compiler.autograd import HOOKS as AUTOGRAD
from tcw.compiler.capture import HOOKS as CAPTURE
from tcw.compiler.capture import settings as settings_hook
from tcw.compiler.control.gate import Gate
from tcw.compiler.control.hooks import RecordingHook, Uninstall, install_all, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.engine.recording import listening
from tcw.compiler.inductor import HOOKS as INDUCTOR
from tcw.compiler.inductor.shadow import HOOK as GPU
from tcw.compiler.inductor.shadow import why_not_predicted
from tcw.compiler.protocol.decision import Decision, Ruling, engine_of
from tcw.compiler.protocol.decision_records import decided_record
from tcw.compiler.protocol.stages import reached
from tcw.compiler.trace.records import HookStatus

HOOKS: tuple[RecordingHook, ...] = (*CAPTURE, *AUTOGRAD, *INDUCTOR)


def statuses() -> tuple[HookStatus, ...]:
    """Which hooks this torch supports. Imports torch."""
    return tuple(hook.check() for hook in HOOKS)


@contextmanager
def recording(
    recorder: Recorder, ask: Callable[[Decision], str] | None = None
) -> Iterator[tuple[HookStatus, ...]]:
    """Record every compile inside the block; afterwards torch is restored.

    `ask` lets the user make decisions; their choices are added to the settings' overrides in
    `Recorder.overrides`.
    """
    settings = recorder.settings

    def watch(decided: Ruling) -> None:
        if not recorder.quiet:
            recorder.emit(decided_record(decided))

    gate = Gate(settings.overrides, watch, ask)
    recorder.overrides = gate.overrides
    wanted = [
        hook
        for hook in HOOKS
        if reached(hook.stage, settings.until) and (hook is not GPU or settings.device == "cuda")
    ]
    # the settings to compare with are those after the other hooks have set theirs
    wanted.sort(key=lambda hook: hook is settings_hook.HOOK)
    uninstall: Uninstall = undo_all()
    try:
        with listening(recorder, gate):
            installed, uninstall = install_all(wanted, recorder)
            if missing := why_not_predicted(settings, installed):
                recorder.warn_once(missing, asked=True)
            yield tuple(installed)
    finally:
        uninstall()
        for id, closest in gate.unknown():
            engine = engine_of(id)
            near = f"; the closest is {closest}" if closest else ""
            if not near and engine != settings.engine != "both":
                near = f"; it is about the {engine} engine"
            elif not near and not reached("codegen", settings.until):
                near = f"; this recording ran only until {settings.until}"
            recorder.warn_once(
                f"override {id} met no decision{near}", asked=True, code="override unknown"
            )
        for ruling in gate.refused():
            recorder.warn_once(
                f"override {ruling.decision.id} = {ruling.wanted!r} is refused: {ruling.refused}",
                asked=True,
            )
