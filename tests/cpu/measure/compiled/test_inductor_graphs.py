"""What the text of Inductor's generated modules says about their kernels."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import torch

from tcw.compiler.measure.compiled.alone import Shadows
from tcw.compiler.measure.compiled.inductor_graphs import InductorGraph
from tcw.compiler.measure.rounds.whole_runs import DeviceRun

GENERATED = """
cpp_fused_add_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r\'\'\'
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0) {}
\'\'\')


triton_poi_fused_mul_1 = async_compile.triton('triton_poi_fused_mul_1', \'\'\'
import triton
@triton.jit
def triton_poi_fused_mul_1(in_ptr0, XBLOCK): pass
\'\'\', device_str='cuda')
"""


def test_the_text_of_a_kernel_is_what_a_recording_holds(tmp_path: Path) -> None:
    """Inductor gives the backend C++ without the line break before it, and Triton with it."""
    file = tmp_path / "generated.py"
    file.write_text(GENERATED, encoding="utf-8")
    graph = InductorGraph(SimpleNamespace(__file__=str(file), call=lambda arguments: None))
    assert list(graph.kernels) == ["cpp_fused_add_0", "triton_poi_fused_mul_1"]
    assert graph.text("cpp_fused_add_0").startswith("#include")
    assert graph.text("triton_poi_fused_mul_1").startswith("\nimport triton")


class Launched:
    """A Triton kernel as in its module: it doubles its argument, on a stream."""

    device_type = "cuda"

    def run(self, x: torch.Tensor, count: int, *, stream: int) -> None:
        assert (count, stream) == (4, 7)
        x *= 2


def test_a_triton_kernel_is_captured_by_its_run_and_timed_by_the_device(tmp_path: Path) -> None:
    file = tmp_path / "generated.py"
    file.write_text(GENERATED, encoding="utf-8")
    name = "triton_poi_fused_mul_1"
    module = SimpleNamespace(__file__=str(file), **{name: Launched()})

    def call(arguments: list[torch.Tensor]) -> None:
        kernel = getattr(module, name)
        assert kernel.device_type == "cuda"
        kernel.run(arguments[0], 4, stream=7)
        kernel.run(arguments[0], 4, stream=7)

    module.call = call
    graph = InductorGraph(module)
    x = torch.ones(4)
    module.call([x])
    assert x.tolist() == [4.0] * 4
    shadows = Shadows()
    steps = graph.capture({name}, shadows)
    assert len(steps) == 2
    assert all(isinstance(step, DeviceRun) for step in steps)
    both = graph.together(steps)
    assert isinstance(both, DeviceRun)
    assert both.launches == 2
    before = shadows.all[0].data.clone()
    both()
    assert torch.equal(shadows.all[0].data.view(torch.float32), 4 * before.view(torch.float32))
    assert x.tolist() == [4.0] * 4, "what the model has is left alone"
    assert isinstance(getattr(module, name), Launched), "the module is as it was"
