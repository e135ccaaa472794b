"""Kernels and their lines; recording them leaves the generated code unchanged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._inductor.codegen.cpp import CppKernel

from tcw.compiler.inductor.cached_code import kernels_in, label_of
from tcw.compiler.inductor.code_nests import nests_of_triton
from tcw.compiler.inductor.stopping_early import HOOK as UNTIL
from tcw.compiler.trace.records import (
    FusionGroups,
    Graph,
    Kernel,
    SchedulerNode,
)
from tests.cpu.inductor.conftest import Watched
from tests.cpu.inductor.models import Softmax, Transformer, Zoo, zoo_inputs
from tests.cpu.inductor.recorded import Recorded, record, recording
from tests.cpu.inductor.test_lowering import line_of
from tests.decided import pairs_in

_COMPUTES = re.compile(r"^\s*(?:auto|int64_t) tmp\d+ = |^\s*tmp\d+ = |\.store\(")


@pytest.fixture(params=["transformer", "trained", "softmax", "zoo"])
def recorded(request: pytest.FixtureRequest) -> Recorded:
    found = request.getfixturevalue(request.param)
    return found if isinstance(found, Recorded) else found.recorded


def test_every_kernel_leads_to_a_user_line(recorded: Recorded) -> None:
    kernels = recorded.all(Kernel)
    assert kernels
    for kernel in kernels:
        assert kernel.locations or kernel.no_line, kernel
        assert not (kernel.locations and kernel.no_line)
        assert kernel.locations, kernel.no_line
        assert kernel.label


def test_kernels_are_those_of_the_wrapper(recorded: Recorded) -> None:
    defined = [
        (name, text)
        for wrapper in recorded.wrappers
        for name, language, text in kernels_in(wrapper)
        if language == "cpp"
    ]
    kernels = [kernel for kernel in recorded.all(Kernel) if kernel.language == "cpp"]
    assert [(kernel.name, recorded.text(kernel.text).strip()) for kernel in kernels] == [
        (name, text.strip()) for name, text in defined
    ]


def test_every_group_is_in_a_kernel(recorded: Recorded) -> None:
    inside = {name for kernel in recorded.all(Kernel) for name in kernel.nodes}
    for groups in recorded.all(FusionGroups):
        for group in groups.groups:
            if group.kind not in ("nop", "extern"):
                assert set(group.nodes) <= inside


def test_every_line_that_computes_names_its_nodes(recorded: Recorded) -> None:
    computing = named = 0
    for kernel in recorded.all(Kernel):
        if kernel.language != "cpp":
            continue
        lines = {line.line: line for line in kernel.lines}
        for number, text in enumerate(recorded.text(kernel.text).splitlines(), 1):
            if _COMPUTES.match(text):
                computing += 1
                named += number in lines and bool(lines[number].nodes)
    assert computing
    assert named == computing


def test_nodes_of_lines_are_origins_of_their_kernel(recorded: Recorded) -> None:
    graphs = {graph.id: {node.name for node in graph.nodes} for graph in recorded.all(Graph)}
    for kernel in recorded.all(Kernel):
        assert set(kernel.origins) <= graphs[kernel.graph]
        for line in kernel.lines:
            assert set(line.nodes) <= graphs[kernel.graph], line


def test_lines_of_a_softmax(softmax: Recorded) -> None:
    kernel = next(k for k in softmax.all(Kernel) if "softmax" in k.label)
    text = softmax.text(kernel.text).splitlines()
    exponential = [line for line in kernel.lines if ".exp()" in text[line.line - 1]]
    assert exponential
    for line in exponential:
        assert line.nodes == ("exp",)
        assert [place.line for place in line.locations] == [line_of("softmax")]
        assert not line.inferred
    constant = next(line for line in kernel.lines if "(0.3)" in text[line.line - 1])
    # torch 2.12 itself gives the product inside the rewritten softmax the softmax's line.
    says_itself = torch.__version__.startswith("2.12.")
    expected = line_of("softmax" if says_itself else "scaled")
    assert [place.line for place in constant.locations] == [expected]
    assert constant.inferred is not says_itself


def test_origins_are_those_of_torchs_own_provenance() -> None:
    from torch._inductor import config, debug
    from torch._inductor.graph import GraphLowering

    seen: dict[str, list[str]] = {}
    with (
        config.patch({"trace.provenance_tracking_level": 1}),
        recording() as recorded,
        pytest.MonkeyPatch.context() as patch,
        torch.no_grad(),
    ):
        codegen = GraphLowering.codegen

        def kept(self, *args, **kwargs):
            answer = codegen(self, *args, **kwargs)
            seen.update(debug._inductor_triton_kernel_to_post_grad_node_info)
            return answer

        patch.setattr(GraphLowering, "codegen", kept)
        torch.compile(Transformer(2))(torch.ones(2, 8, 32))
    theirs: Counter[tuple[str, str]] = Counter()
    for handle, nodes in seen.items():
        theirs.update((handle.rpartition(":")[0], node) for node in nodes)
    ours: Counter[tuple[str, str]] = Counter()
    for kernel in recorded.all(Kernel):
        ours.update((kernel.name, node) for node in kernel.origins)
    assert theirs
    assert ours == theirs


def test_a_model_without_lines_of_its_own_says_so() -> None:
    recorded, _ = record(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.ones(2, 4))
    kernels = recorded.all(Kernel)
    assert kernels
    for kernel in kernels:
        assert not kernel.locations
        assert "no user line" in kernel.no_line
        assert "of module 0" in kernel.no_line or "of module 1" in kernel.no_line


def test_repeated_kernels_are_one_record_with_all_their_calls(transformer: Watched) -> None:
    kernels = [k for k in transformer.recorded.all(Kernel) if k.language == "cpp"]
    assert len(kernels) == len({kernel.name for kernel in kernels})
    repeated = [kernel for kernel in kernels if kernel.steps]
    assert repeated, "four equal layers share kernels"
    for kernel in repeated:
        assert len(kernel.nodes) % len(kernel.steps) == 0


def test_library_calls(transformer: Watched) -> None:
    calls = Counter(k.name for k in transformer.recorded.all(Kernel) if k.language == "aten")
    extern = [node for node in transformer.recorded.all(SchedulerNode) if node.kind == "extern"]
    assert sum(calls.values()) == len(extern)
    assert calls["extern_kernels.bmm"] == 8


def test_the_result_is_right(transformer: Watched, trained: Watched) -> None:
    for watched in (transformer, trained):
        torch.testing.assert_close(watched.output, watched.expected)


def generated(model: nn.Module, inputs: tuple[torch.Tensor, ...], *, recorded: bool) -> list[str]:
    """The wrappers of a compile, observed outside the hooks."""
    from torch._inductor.graph import GraphLowering

    texts: list[str] = []
    chosen = {} if recorded else {"hooks": (UNTIL,)}
    with recording("codegen", **chosen), pytest.MonkeyPatch.context() as patch:
        codegen = GraphLowering.codegen

        def seen(self, *args, **kwargs):
            answer = codegen(self, *args, **kwargs)
            texts.append(re.sub(r"# AOT ID: .*", "", answer[0].value))
            return answer

        patch.setattr(GraphLowering, "codegen", seen)
        output = torch.compile(model)(*inputs)
        if isinstance(output, torch.Tensor) and output.requires_grad:
            output.sum().backward()
    return texts


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        pytest.param(Zoo(), zoo_inputs(), id="zoo", marks=pytest.mark.long),
        pytest.param(Softmax(), (torch.ones(4, 8, 16),), id="softmax"),
        pytest.param(
            Transformer(1), (torch.ones(2, 8, 32),), id="transformer", marks=pytest.mark.long
        ),
    ],
)
def test_recording_does_not_change_the_code(
    model: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> None:
    with torch.set_grad_enabled(not isinstance(model, Zoo)):
        plain = generated(model, inputs, recorded=False)
        watched = generated(model, inputs, recorded=True)
    assert plain
    assert watched == plain


def several(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(0), x.sum(1), x.t().contiguous()


def single(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Two single elements: a nest each, without loops."""
    return a + b, a * b.sin()


def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Groups that are fused at an outer loop, or next to each other in one function."""
    h = F.gelu(F.layer_norm(torch.softmax(x, -1) + y, (32,)))
    return h * y.sum(0, keepdim=True)


def over_threads(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Sums that threads share: loops over threads set them up and combine them."""
    return x.sum(), x.sum() + x[0], x[0] * 2


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (several, (torch.randn(64, 32),)),
        (single, (torch.randn(()), torch.randn(()))),
        (outer, (torch.randn(64, 32), torch.randn(64, 32))),
        (over_threads, (torch.randn(1 << 20),)),
    ],
)
def test_loop_nests_are_those_that_inductor_generated(
    model: Callable[..., object], inputs: tuple[torch.Tensor, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inductor writes the loops of each `LoopNest` with this function."""
    written: list[object] = []
    original = CppKernel.codegen_loops_impl

    def codegen_loops_impl(self: CppKernel, *args: object, **kwargs: object) -> object:
        written.append(args)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(CppKernel, "codegen_loops_impl", codegen_loops_impl)
    torch.manual_seed(0)
    recorded, _ = record(model, *inputs)
    kernels = recorded.all(Kernel)
    assert sum(kernel.loop_nests for kernel in kernels) == len(written) > 0
    for kernel in kernels:
        text = recorded.text(kernel.text).splitlines()
        assert all(text[line - 1].strip().startswith("for(") for line in kernel.loops)
        assert kernel.loops or model is single


def test_the_parts_of_a_combo_kernel_are_loop_nests() -> None:
    assert nests_of_triton("x = tl.load(p)\n") == 1
    parts = "num_xblocks_0 = tl.cdiv(n, X)\nnum_xblocks_1 = num_xblocks_0 + tl.cdiv(n, X)\n"
    assert nests_of_triton(f"{parts}if pid < num_xblocks_0:\n  pass\n") == 2


def test_kernels_of_a_wrapper_are_read_from_its_text(softmax: Recorded) -> None:
    found = list(kernels_in(softmax.wrappers[0]))
    recorded = softmax.all(Kernel)
    assert Counter(language for _, language, _ in found) == Counter(
        kernel.language for kernel in recorded
    )
    assert {name for name, _, _ in found} == {kernel.name for kernel in recorded}


def test_library_calls_of_a_wrapper() -> None:
    text = """
def call(args):
        buf0 = empty_strided_cpu((1, ), (1, ), torch.int64)
        aten.randint.low_out(-5, 5, [1], out=buf0)
        extern_kernels.addmm(arg0, arg1, out=buf1)
        buf2 = torch.ops.aten.sort.stable(buf1)
        # extern_kernels.addmm(commented)
"""
    assert [name for name, _, _ in kernels_in(text)] == [
        "aten.randint.low_out",
        "extern_kernels.addmm",
        "torch.ops.aten.sort.stable",
    ]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cpp_fused_gelu_mul_0", "gelu_mul"),
        ("cpp_fused__softmax_abs_12", "softmax_abs"),
        ("triton_poi_fused_add_3", "add"),
        ("extern_kernels.addmm", "addmm"),
    ],
)
def test_labels_from_names(name: str, label: str) -> None:
    assert label_of(name) == label


@pytest.mark.parametrize("whole", [True, False])
def test_code_from_the_cache_is_recorded_and_says_so(whole: bool) -> None:
    """`whole`: from AOTAutograd's cache, else from the FX graph cache."""
    from torch._functorch import config
    from torch._inductor.utils import fresh_cache

    from tcw.compiler.trace.records import Warned, Wrapper

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    with fresh_cache(), config.patch(enable_autograd_cache=whole):
        first, _ = record(function, torch.ones(64), until="run")
        second, _ = record(function, torch.ones(64), until="run")
    assert pairs_in(first) == pairs_in(second) == []
    assert first.all(SchedulerNode)
    assert not second.all(SchedulerNode)
    assert second.wrappers == first.wrappers
    assert [kernel.name for kernel in second.all(Kernel)] == [
        kernel.name for kernel in first.all(Kernel)
    ]
    assert all("cache" in kernel.no_line for kernel in second.all(Kernel))
    (warned,) = second.all(Warned)
    assert "served from torch's caches" in warned.message
    assert len(second.all(Wrapper)) == 1
