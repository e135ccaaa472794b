"""CUDA graphs of a log: torch times each recording, and states why a compile has none.

Why a graph was recorded again, for which sizes, and what was skipped in a call is in no log.
"""

from __future__ import annotations

from tcw.compiler.trace.cudagraph_reasons import reason_of, stack_of
from tcw.compiler.trace.records import CudagraphRecording, CudagraphSkip, Phase
from tcw.compiler.trace.torch_logs.frames import Metrics
from tcw.compiler.trace.torch_logs.places import Files, users

RECORD = "CUDAGraphNode.record"
"""The name of torch's phase (`dynamo_timed_cudagraph` in torch/_inductor/cudagraph_trees.py)."""


def recording_of(phase: Phase, kind: str) -> CudagraphRecording | None:
    """The recording that this phase timed, of the compile's graph of this kind; None if it timed
    something else."""
    if phase.name != RECORD:
        return None
    return CudagraphRecording(
        graph=f"{phase.compile_id}/{kind}" if phase.compile_id else "",
        compile_id=phase.compile_id,
        again=None,
        seconds=phase.seconds,
    )


def skip_of(metrics: Metrics, files: Files) -> CudagraphSkip | None:
    """The last skip of a compile, from torch's account of it; None if it has none."""
    message = metrics.words("cudagraph_skip_reason")
    if not message:
        return None
    stack = users(files.traceback(stack_of(message)))
    return CudagraphSkip(
        reason=reason_of(message),
        compile_id=metrics.compile_id,
        location=stack[-1] if stack else None,
    )
