"""Machine code of GPU kernels without a GPU: several at a time, and what that must not change."""

from __future__ import annotations

import re
from pathlib import Path
from struct import unpack_from

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.triton_unit import unit
from tcw.compiler.codegen.unit import DeviceModule
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.runtime.gpu import binaries as module
from tcw.compiler.runtime.gpu import triton_stages as stages
from tcw.compiler.runtime.gpu.binaries import binaries, code_of
from tcw.compiler.runtime.gpu.triton_stages import NoTriton, compiled, load_module, to_ptx
from tcw.compiler.runtime.store import FileStore
from tests.cpu.codegen.nests import programs

pytest.importorskip("triton")

ARCH = "sm_90"


def kernels_of(function, *inputs: torch.Tensor) -> DeviceModule:
    (program,) = programs(function, *inputs, machine=GPU)
    made = unit(None, program, Limits(ARCHITECTURES[ARCH], program.graph.hints)).device
    assert made is not None
    return made


def several(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.softmax(-1), y.t().contiguous() + 1, y.sum(), z.cumsum(0), F.gelu(z)


@pytest.fixture(scope="module")
def device() -> DeviceModule:
    return kernels_of(several, torch.randn(2048, 512), torch.randn(600, 300), torch.randn(70))


def test_threads_make_the_same_code(device: DeviceModule, tmp_path: Path, monkeypatch) -> None:
    assert len(device.kernels) >= 4
    monkeypatch.setattr(module, "threads_for", lambda kernels: 4)
    found = binaries(device.text, device.kernels, ARCH, FileStore(tmp_path))
    names = load_module(device.text)
    for kernel, binary in zip(device.kernels, found, strict=True):
        alone = compiled(names, kernel, ARCH)
        code = code_of(binary, FileStore(tmp_path))
        assert code is not None
        assert instructions(code, kernel.name) == instructions(alone.asm["cubin"], kernel.name)
        assert (binary.name, binary.threads) == (kernel.name, 32 * kernel.warps)


def test_ptxas_starts_once_for_several(device: DeviceModule, tmp_path: Path, monkeypatch) -> None:
    calls: list[int] = []

    def assembled(kernels: list[stages.Ptx]) -> list[bytes]:
        calls.append(len(kernels))
        return stages.assembled(kernels)

    monkeypatch.setattr(module, "threads_for", lambda kernels: 16)
    monkeypatch.setattr(module, "assembled", assembled)
    binaries(device.text, device.kernels, ARCH, FileStore(tmp_path))
    kernels = len(device.kernels)
    assert sum(calls) == kernels
    assert len(calls) == -(-kernels // 8)


def test_batches_have_about_as_much_text_each() -> None:
    lengths = [900, 100, 100, 100, 100, 100, 100, 100, 100, 100]
    made = {
        str(number): stages.Ptx("x" * length, stages.Metadata("", 4, 0), bytes, {})
        for number, length in enumerate(lengths)
    }
    assert sorted(map(len, module.batched(made, 16))) == [1, 9]
    assert len(module.batched(made, 1)) == 1


def instructions(code: bytes, name: str) -> bytes:
    """A kernel's part of an ELF file of 64 bits: its section `.text.NAME`."""
    (at,), (size, count, names) = unpack_from("<Q", code, 40), unpack_from("<3H", code, 58)
    heads = [unpack_from("<2I4Q", code, at + number * size) for number in range(count)]
    start = heads[names][4]
    for head in heads:
        title = code[start + head[0] : code.index(b"\0", start + head[0])]
        if title == f".text.{name}".encode():
            return code[head[4] : head[4] + head[5]]
    raise AssertionError(f"no {name}")


def test_a_few_files_hold_all_kernels(device: DeviceModule, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "threads_for", lambda kernels: 2)
    monkeypatch.setattr(module, "A_BATCH", 2)
    found = binaries(device.text, device.kernels, ARCH, FileStore(tmp_path))
    assert len({binary.code for binary in found}) == 2 < len(found)


def test_a_ptxas_that_refuses_several(device: DeviceModule, tmp_path: Path, monkeypatch) -> None:
    names = load_module(device.text)
    made = [to_ptx(names, kernel, ARCH) for kernel in device.kernels[:3]]
    monkeypatch.setattr(stages, "_merged", lambda texts: "no assembly")
    for one, code in zip(made, stages.assembled(made), strict=True):
        assert instructions(code, one.metadata.name) == instructions(
            one.assemble(one.ptx), one.metadata.name
        )


def test_nothing_is_compiled_twice(device: DeviceModule, tmp_path: Path, monkeypatch) -> None:
    store = FileStore(tmp_path)
    twice = (*device.kernels, *device.kernels)
    count = 0

    def counted(*args, **kwargs):
        nonlocal count
        count += 1
        return to_ptx(*args, **kwargs)

    monkeypatch.setattr(module, "to_ptx", counted)
    found = binaries(device.text, twice, ARCH, store)
    assert count == len(device.kernels)
    assert binaries(device.text, twice, ARCH, store) == found
    assert count == len(device.kernels)


def test_kernels_of_other_graphs_are_found(tmp_path: Path, monkeypatch) -> None:
    """Whatever their arguments' names, their users' lines and the other kernels beside them, in
    the same place: a kernel behind another one waits for it, one before another lets that start."""
    store = FileStore(tmp_path)
    x, y = torch.randn(600, 300), torch.randn(8192, 512)
    first = kernels_of(lambda x, y: (y.exp(), x.softmax(-1)), y, x)
    binaries(first.text, first.kernels, ARCH, store)
    taken: list[str] = []

    def counted(module, kernel, arch):
        taken.append(kernel.name)
        return to_ptx(module, kernel, arch)

    monkeypatch.setattr(module, "to_ptx", counted)
    second = kernels_of(lambda y, x: (F.gelu(y), x.softmax(-1)), x, y)
    found = binaries(second.text, second.kernels, ARCH, store)
    assert taken == ["gelu"]
    assert len(found) == len(second.kernels) == 2


def test_the_kernel_that_fails_is_named(device: DeviceModule, tmp_path: Path) -> None:
    text = device.text.replace("tl.store(", "tl.no_such_store(", 1)
    with pytest.raises(NoTriton, match=rf"(?s){device.kernels[0].name}: .*no_such_store"):
        binaries(text, device.kernels, ARCH, FileStore(tmp_path))


def test_a_triton_with_other_stages_is_reported(device: DeviceModule, monkeypatch) -> None:
    from triton.compiler import ASTSource

    monkeypatch.setattr(ASTSource, "make_ir", lambda self, options: None)
    stages._triton.cache_clear()
    with pytest.raises(NoTriton, match=r"not available in Triton .*ASTSource.make_ir"):
        compiled(load_module(device.text), device.kernels[0], ARCH)
    stages._triton.cache_clear()


def test_the_stages_are_tritons(device: DeviceModule, tmp_path: Path, monkeypatch) -> None:
    """`triton.compile` makes the same machine code."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    names = load_module(device.text)
    for kernel in device.kernels:
        function = names[kernel.name]
        signature = dict(zip(function.arg_names, kernel.types, strict=True))
        multiples = [["tt.divisibility", stages.ALIGNED]]
        aligned = {(place,): multiples for place in range(len(kernel.types))}
        source = ASTSource(function, signature, {}, aligned)
        options = {"num_warps": kernel.warps}
        theirs = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        ours = compiled(names, kernel, ARCH, texts=True)
        assert ours.asm["cubin"] == theirs.asm["cubin"]
        assert ours.asm["ptx"] == theirs.asm["ptx"]
        assert set(ours.asm) >= {"ttir", "ttgir", "llir", "ptx", "cubin"}
        assert ours.metadata.shared == theirs.metadata.shared


def test_no_thread_counts_all_elements_of_a_batch() -> None:
    """Triton computed how many elements a part of a batch norm has in each thread, lane by lane:
    42,000 lines of PTX, 8 seconds."""
    device = kernels_of(
        lambda x: F.batch_norm(x, None, None, training=True),
        torch.zeros(32, 64, 112, 112, dtype=torch.bfloat16),
    )
    names = load_module(device.text)
    for kernel in device.kernels:
        text = compiled(names, kernel, ARCH, texts=True).asm["ptx"]
        assert len(re.findall(r"^\s+cvt\.", text, re.MULTILINE)) < 500
