"""GPU code predicted on a machine without a GPU: every kernel assembles, for every architecture."""

from __future__ import annotations

import re

import pytest
import torch

from tcw.compiler import pipeline
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.inductor.shadow import HOOK, device, install, why_not_predicted
from tcw.compiler.inductor.shadow import shadow_compile as shadow
from tcw.compiler.inductor.shadow.triton_sources import kernel_sources
from tcw.compiler.trace.records import HookStatus, Kernel, Settings, Warned
from tcw.compiler.trace.writer import TraceWriter
from tests.cpu.inductor.predictions import Block, Listening, Prediction, predicted, train


def softmax_and_norm() -> None:
    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        x = torch.softmax(x, -1)
        return torch.nn.functional.layer_norm(x, (96,), weight, bias)

    torch.compile(function)(torch.randn(64, 96), torch.randn(96), torch.randn(96))


def transformer_training() -> None:
    torch.manual_seed(0)
    train(torch.compile(Block()), torch.randn(2, 16, 32))


def reductions() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.var((0, 2)), x.amax(1).argmax(-1), x.cumsum(-1), x.double().sum()

    torch.compile(function)(torch.randn(64, 8, 513))


def dynamic_shapes() -> None:
    function = torch.compile(lambda x, y: (torch.softmax(x, -1) * y).sum(0), dynamic=True)
    function(torch.randn(33, 70), torch.randn(70))


MODELS = {each.__name__: each for each in (softmax_and_norm, reductions, dynamic_shapes)}


def small_training() -> None:
    """A norm, a product and an activation: kernels of the forward and of the backward."""
    torch.manual_seed(0)
    norm, layer = torch.nn.LayerNorm(32), torch.nn.Linear(32, 8)
    train(torch.compile(torch.nn.Sequential(norm, layer, torch.nn.GELU())), torch.randn(16, 32))


@pytest.fixture(scope="module")
def training() -> Prediction:
    with predicted() as prediction:
        small_training()
    return prediction


def check(prediction: Prediction) -> None:
    """Every kernel of every wrapper is present once per architecture, complete."""
    assert prediction.warnings == []
    names = [kernel.name for code in prediction.wrappers for kernel in kernel_sources(code)]
    assert names
    assert sorted(binary.kernel for binary in prediction.binaries) == sorted(names)
    for binary in prediction.binaries:
        texts = {name: prediction.recorder.texts[getattr(binary, name)] for name in STAGES}
        assert binary.error == ""
        assert binary.predicted
        assert "tt.func" in texts["ttir"]
        assert "ttg." in texts["ttgir"]
        assert "define" in texts["llir"]
        assert re.search(rf"^\.target {binary.arch}a?\b", texts["ptx"], re.MULTILINE)
        assert "EXIT" in texts["sass"]
        assert 0 < (binary.registers or 0) <= 255
        limit = ARCHITECTURES[binary.arch].shared_per_block
        assert 0 <= (binary.shared_bytes or 0) <= limit
        assert binary.spill_bytes is not None
        assert "num_warps=" in binary.configuration


STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")


@pytest.mark.parametrize(
    ("model", "architectures"),
    [
        ("softmax_and_norm", tuple(ARCHITECTURES)),
        pytest.param("reductions", tuple(ARCHITECTURES), marks=pytest.mark.long),
        pytest.param("dynamic_shapes", tuple(ARCHITECTURES), marks=pytest.mark.long),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_every_kernel_assembles(model: str, architectures: tuple[str, ...]) -> None:
    with predicted(architectures) as prediction:
        MODELS[model]()
    check(prediction)
    assert {binary.arch for binary in prediction.binaries} == set(architectures)


def test_every_kernel_of_a_training_step_assembles(training: Prediction) -> None:
    check(training)
    assert len(training.wrappers) == 2
    assert {binary.arch for binary in training.binaries} == {"sm_90"}


@pytest.mark.long
def test_every_kernel_of_a_training_step_assembles_for_every_architecture() -> None:
    with predicted(tuple(ARCHITECTURES)) as prediction:
        transformer_training()
    check(prediction)
    assert len(prediction.wrappers) == 2 * len(ARCHITECTURES)
    assert {binary.arch for binary in prediction.binaries} == set(ARCHITECTURES)


def test_the_real_compile_stays_on_the_cpu(training: Prediction) -> None:
    assert len(training.real) == 2
    assert all("async_compile.cpp" in code for code in training.real)
    assert not any("async_compile.triton" in code or "cuda:0" in code for code in training.real)
    assert not any("async_compile.cpp" in code for code in training.wrappers)


def test_a_source_line_of_the_kernel_is_named_in_its_assembly(training: Prediction) -> None:
    binary = training.binaries[0]
    assert re.search(rf'"{binary.kernel}\.\w+\.py", line \d+', training.recorder.texts[binary.sass])


def test_binaries_name_the_kernels_that_the_recording_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with predicted() as prediction:
        generate = shadow._generated

        def generate_and_record(*args: object) -> str:
            code = generate(*args)
            for number, kernel in enumerate(kernel_sources(code)):
                name, identity = kernel.name, f"k{number + 7}"
                record = Kernel(
                    id=identity, graph="0/0", name=name, label="", language="triton", predicted=True
                )
                prediction.recorder.emit(record)
            return code

        monkeypatch.setattr(shadow, "_generated", generate_and_record)
        softmax_and_norm()
    assert [binary.kernel for binary in prediction.binaries] == ["k7"]


def test_a_failing_lowering_is_a_warning_that_names_the_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lowerings = torch._inductor.lowering.lowerings
    stock = lowerings[torch.ops.aten.sin.default]

    def only_on_the_cpu(*args: object, **kwargs: object) -> object:
        if predicting.get():
            raise NotImplementedError("no sines on a GPU")
        return stock(*args, **kwargs)

    monkeypatch.setitem(lowerings, torch.ops.aten.sin.default, only_on_the_cpu)
    x = torch.randn(8)
    with predicted() as prediction:
        torch.testing.assert_close(torch.compile(lambda x: x.sin() + 1)(x), x.sin() + 1)
    assert len(prediction.warnings) == 1
    assert "aten.sin.default" in prediction.warnings[0]
    assert "no sines on a GPU" in prediction.warnings[0]
    assert prediction.binaries == []
    assert not torch.cuda.is_available()


def test_attention_of_the_cpu_is_named() -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    q = torch.randn(1, 2, 16, 8)
    with predicted() as prediction:
        torch.compile(lambda q: attention(q, q, q).relu())(q)
    assert len(prediction.warnings) == 1
    assert "_scaled_dot_product_flash_attention_for_cpu" in prediction.warnings[0]


def test_settings_that_time_on_the_gpu_are_named() -> None:
    with predicted() as prediction:
        torch.compile(lambda x: x.sin(), options={"coordinate_descent_tuning": True})(
            torch.randn(8)
        )
    assert ["coordinate_descent_tuning" in each for each in prediction.warnings] == [True]
    assert len(prediction.binaries) == 1


def test_a_torch_without_the_registry_of_guards_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "REGISTRY", "_ZN3c104impl7nowhereE")
    x = torch.randn(8)
    with predicted() as prediction:
        torch.testing.assert_close(torch.compile(lambda x: x.tan())(x), x.tan())
    (message,) = prediction.warnings
    assert message.startswith("no sm_90 code is predicted: torch")
    assert "has no registry of device guards" in message


def test_what_torchs_caches_hold_is_predicted_too() -> None:
    with torch._inductor.utils.fresh_cache():
        for _ in range(2):
            with predicted(caches=True) as prediction:
                torch.compile(lambda x: x.sin() * 3)(torch.randn(8))
            assert len(prediction.binaries) == 1
            assert torch._functorch.config.enable_autograd_cache


def test_a_shared_cache_folder_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "tcw").mkdir(mode=0o777)
    (folder / "tcw").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    with predicted() as prediction:
        torch.compile(lambda x: x.cos())(torch.randn(8))
    assert ["chmod 700" in each for each in prediction.warnings] == [True]
    assert list((folder / "tcw").iterdir()) == []


def test_only_a_recording_for_a_gpu_predicts() -> None:
    stock = torch._inductor.compile_fx._compile_fx_inner
    undo = install(Recorder(writer=TraceWriter(), settings=Settings(file="model.py")))
    assert torch._inductor.compile_fx._compile_fx_inner is stock
    undo()


def test_an_unknown_architecture_is_said() -> None:
    recorder = Listening(arch="sm_70")
    install(recorder)()
    (warned,) = recorder.records
    assert isinstance(warned, Warned)
    assert "sm_70" in warned.message
    assert "sm_80, sm_90, sm_100" in warned.message


def test_this_torch_offers_it() -> None:
    assert HOOK.check().available
    assert HOOK in pipeline.HOOKS


def test_why_nothing_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Settings(file="", device="cuda", arch="sm_80")
    there = HookStatus(name=HOOK.name, available=True, offers="")
    gone = HookStatus(name=HOOK.name, available=False, offers="", reason="no driver")
    assert why_not_predicted(Settings(file=""), []) == ""
    assert why_not_predicted(asked, [there]) == ""
    assert "no sm_80 code is predicted: no driver" in why_not_predicted(asked, [gone])
    early = Settings(file="", device="cuda", until="fusion")
    assert "--until codegen" in why_not_predicted(early, [])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install triton" in why_not_predicted(asked, [gone])
