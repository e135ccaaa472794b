"""What Inductor's generated modules say of their kernels, read from their text."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from compiler.measure.inductor_graphs import InductorGraph

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
