"""GPU code without a GPU: what stock Inductor would generate for an A100, H100 or B200."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from tcw.compiler.control.hooks import RecordingHook, Uninstall
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.gpu.architectures import ARCHITECTURES, DEFAULT
from tcw.compiler.protocol.stages import reached
from tcw.compiler.trace.records import HookStatus, Settings


def install(recorder: Recorder) -> Uninstall:
    """Predict code if the recording asks for a GPU; else patch nothing."""
    settings = recorder.settings
    if settings.device != "cuda":
        return lambda: None
    architecture = ARCHITECTURES.get(settings.arch or DEFAULT)
    if architecture is None:
        known = ", ".join(ARCHITECTURES)
        recorder.warn_once(
            f"no {settings.arch} code is predicted: tcw knows {known}; take the nearest of them",
            asked=True,
        )
        return lambda: None
    # These import torch and Triton, which a recording for the CPU does not need.
    from tcw.compiler.inductor.shadow import shadow_compile as shadow

    return shadow.install(recorder, architecture)


def why_not_predicted(settings: Settings, hooks: Sequence[HookStatus]) -> str:
    """Why a recording that asks for GPU code predicts none, and what to do; "" if it does predict.

    `hooks`: those of the recording.
    """
    if settings.device != "cuda":
        return ""
    arch = settings.arch or DEFAULT
    if not reached(HOOK.stage, settings.until):
        return (
            f"no {arch} code is predicted: the recording ends after {settings.until}; "
            f"--until {HOOK.stage} generates it"
        )
    status = next((hook for hook in hooks if hook.name == HOOK.name), None)
    if status is None or status.available:
        return ""
    if importlib.util.find_spec("triton") is None:
        return (
            f"no {arch} code is predicted: Triton is not installed; "
            "pip install triton (3.6 or later; torch's release notes name the one it goes with)"
        )
    return f"no {arch} code is predicted: {status.reason}; tcw doctor says what this torch offers"


HOOK = RecordingHook(
    name="predicted gpu code",
    offers="Triton, PTX and SASS for an absent GPU, with registers and spills",
    needs=(
        "triton.compiler:ASTSource",
        "triton.backends.compiler:GPUTarget",
        "triton.runtime.driver:driver.set_active",
        "torch._C:_ensureCUDADeviceGuardSet",
        "torch._dynamo.device_interface:device_interfaces",
        "torch._functorch.config:enable_autograd_cache",
        "torch._dynamo.utils:counters",
        "torch._inductor:metrics",
        "torch._inductor.compile_fx:_compile_fx_inner",
        "torch._inductor.graph:GraphLowering.compile_to_module",
        "torch._inductor.graph:GraphLowering.codegen",
        "torch._inductor.async_compile:AsyncCompile.use_process_pool",
        "torch._inductor.runtime.triton_heuristics:CachingAutotuner._precompile_config",
        "torch._inductor.runtime.triton_helpers:set_driver_to_gpu",
        "torch._inductor.runtime.autotune_cache:AutotuneCache.create",
        "torch._subclasses.fake_tensor:FakeTensorMode.avoid_device_init",
        "torch._subclasses.fake_tensor:init_gpu_context",
    ),
    install=install,
    stage="codegen",
    test="inductor/test_shadow_records.py",
)
