"""Why a compiled call's results are wrong, once everything has been measured."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from msgspec import structs

from tcw.compiler.measure.calls.runs import prepare
from tcw.compiler.trace.records import EnginePart, OutputError
from tcw.workbench.worker.engine_calls import EngineCalls
from tcw.workbench.worker.forget import beside_what_is_compiled
from tcw.workbench.worker.unrecorded import host_of


def explain_difference(calls: EngineCalls, alone: bool) -> None:
    """Record which stage makes the worst result wrong, if one is. `alone`: no other engine is
    recorded, so the record needs not say whose it is."""
    numerics = calls.numerics
    if numerics is None or numerics.within is not False or not numerics.worst:
        return
    from tcw.compiler.measure.precision.stages import SECONDS, WrongCall, wrong_stage

    worst = _first_like(numerics.worst)
    if not worst.call:
        return
    if not alone:
        calls.recorder.emit(EnginePart(engine=calls.engine))
    sets = calls.sets[: worst.call]
    call = WrongCall(calls.engine, calls.compiled, sets, worst, beside_what_is_compiled)

    def kernels() -> str | None:
        compiling = sum(wall for wall, _ in calls.seconds[: worst.call])
        if calls.wrong_kernel is None and compiling < SECONDS:
            calls.wrong_kernel = _first_wrong_kernel(calls, worst.call)
        return calls.wrong_kernel

    calls.recorder.emit(wrong_stage(host_of(calls.recorder), call, kernels))


def _first_like(errors: Sequence[OutputError]) -> OutputError:
    """The worst result in the first call in which it is about as wrong: calls before it have to be
    made again too."""
    worst = errors[0]
    like = (one for one in errors if one.path == worst.path and one.note == worst.note)
    near = [one for one in like if 4 * one.max_abs >= worst.max_abs]
    return min(near, key=lambda one: one.call)


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Our engine's graphs are compiled again: from its cache they come without their operations."""
    from tcw.compiler.runtime.store import FOLDER_VARIABLE

    before = os.environ.get(FOLDER_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="tcw-again-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(FOLDER_VARIABLE)
            if before is not None:
                os.environ[FOLDER_VARIABLE] = before


def _first_wrong_kernel(calls: EngineCalls, number: int) -> str:
    """Compile again, to keep what is needed to compare the kernels of this call; their ids are the
    same, and the comparison is recorded."""
    import torch

    from tcw.compiler.measure.compiled.collected import collecting
    from tcw.compiler.measure.precision.verify_call import verify

    recorder, settings = calls.recorder, calls.recorder.settings
    host = host_of(recorder)
    recorder.settings = structs.replace(settings, verify=True, profiled_call=number)
    torch._dynamo.reset()
    recorder.start_over()
    records = recorder.unwritten = []
    try:
        with ExitStack() as stack:
            stack.enter_context(_empty_cache())
            collected = stack.enter_context(collecting())
            with host.unrecorded():
                recorder.quiet = False
                model = calls.compiled_model()
                for inputs in calls.sets[:number]:
                    prepare(model, inputs, settings.grad)()
            recorder.unwritten = None
            run = prepare(model, calls.sets[number - 1], settings.grad)
            return verify(host, records, collected, run, calls.engine)
    finally:
        recorder.unwritten = None
        recorder.settings = settings
