"""Calls of segments without Python in between: arguments, outputs, errors, threads."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from tcw.compiler.codegen.launcher.segment import SCALAR_TYPES
from tcw.compiler.codegen.launcher.sources import launcher_text
from tcw.compiler.loops.sizes import multiply, symbol
from tcw.compiler.memory.plan import InArena, Step
from tcw.compiler.runtime import compiled, launcher
from tcw.compiler.runtime.addresses import HOOK, TORCH, WRAP, Addresses, addresses
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.compiled import load
from tcw.compiler.runtime.gpu.driver import NEW
from tcw.compiler.runtime.python_path import python_functions
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.runtime.toolchain import LAUNCHER_LIBRARIES, find_compiler, launcher_flags
from tests.cpu.codegen.units import compiler_command
from tests.cpu.runtime.plans import Kernel, Planned, add_mul, memory, operand, segment, tensor

MEGA = 1 << 20


@pytest.fixture(params=["launcher", "ctypes"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to call a segment."""
    if request.param == "ctypes":
        monkeypatch.setattr(compiled, "launcher", lambda *_: launcher.Missing("not asked for"))
    return str(request.param)


def made(store: FileStore) -> launcher.Launcher:
    found = launcher.launcher(find_compiler(), store)
    assert isinstance(found, launcher.Launcher)
    return found


def plan_of(
    body: str,
    takes: list[Any],
    gives: list[tuple[str, list[Any], str]],
    outputs: list[object] | None = None,
    sizes: tuple[str, ...] = (),
    parameters: list[str] | None = None,
) -> Planned:
    """A graph of one kernel."""
    names = [node.name for node in takes]
    given = [name for name, _, _ in gives]
    kernel = Kernel("kernel", (*names, *given), body, sizes)
    return Planned(
        takes,
        [operand(name, shape, dtype) for name, shape, dtype in gives]
        if outputs is None
        else outputs,
        [Step(segment([kernel], names, given, sizes))],
        [kernel],
        [memory(name, shape, dtype) for name, shape, dtype in gives],
        parameters,
    )


def test_this_torch_has_all_that_the_launcher_calls() -> None:
    status = HOOK.check()
    assert status.available, status.reason


def test_numbers_of_dtypes_are_torchs(store: FileStore) -> None:
    for name in SCALAR_TYPES:
        plan = plan_of("", [], [("q", [3], name)])
        (result,) = load(plan.artifact(), store).call([])
        assert result.dtype == getattr(torch, name)
        assert result.shape == (3,)


def test_a_graph_is_called_directly(store: FileStore, path: str) -> None:
    x, y = torch.randn(8), torch.randn(8)
    call = load(add_mul().artifact(), store).call
    arguments = [x, y]
    answer = call(arguments)
    assert type(answer) is list
    assert arguments == []
    assert torch.equal(answer[0], (x + y) * 2)
    assert call._boxed_call is True  # type: ignore[attr-defined]


def test_symbolic_sizes(store: FileStore, path: str) -> None:
    call = load(add_mul(symbol("s0"), ("s0",)).artifact(), store).call
    for count in (0, 1, 5, 1000, MEGA):
        x, y = torch.randn(count), torch.randn(count)
        (q,) = call([count, x, y])
        assert q.shape == (count,)
        assert torch.equal(q, (x + y) * 2)


def test_what_cannot_be_a_size_raises(store: FileStore, path: str) -> None:
    call = load(add_mul(symbol("s0"), ("s0",)).artifact(), store).call
    with pytest.raises(TypeError):
        call(["8", torch.randn(8), torch.randn(8)])
    with pytest.raises(TypeError, match="wrong number of arguments"):
        call([8, torch.randn(8)])


@pytest.mark.parametrize(
    "prepare",
    [
        lambda x: x[4:12],
        lambda x: torch.nn.Parameter(x[:8]),
        lambda x: x[:8].requires_grad_(),
        lambda x: torch.randn(64)[3:11],
    ],
    ids=["offset", "parameter", "requires grad", "unaligned"],
)
def test_kinds_of_tensors(store: FileStore, path: str, prepare: Any) -> None:
    x = prepare(torch.randn(16))
    call = load(add_mul().artifact(), store).call
    (q,) = call([x, x])
    assert torch.equal(q, (x + x) * 2)
    assert not q.requires_grad


def test_inference_mode(store: FileStore) -> None:
    call = load(add_mul().artifact(), store).call
    with torch.inference_mode():
        x = torch.randn(8)
        (q,) = call([x, x])
        assert q.is_inference()
        assert torch.equal(q, x * 4)


def test_tensors_without_memory_run_the_graph_as_it_is(store: FileStore, path: str) -> None:
    def otherwise(arguments: list[Any]) -> list[Any]:
        x, y = arguments
        arguments.clear()
        return [(x + y) * 2]

    artifact = add_mul().artifact()
    call = load(artifact, store, otherwise=otherwise).call
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.randn(8))
        (q,) = call([fake, fake])
        assert type(q) is type(fake)
    (q,) = call([torch.randn(8, device="meta")] * 2)
    assert q.device.type == "meta"
    alone = load(artifact, store).call
    with pytest.raises(RuntimeError, match="no memory"):
        alone([torch.randn(8, device="meta")] * 2)


def test_anything_else_runs_the_graph_as_it_is(store: FileStore) -> None:
    call = load(add_mul().artifact(), store, otherwise=lambda arguments: ["otherwise"]).call
    assert call([None, torch.randn(8)]) == ["otherwise"]


OUTSIDE = "((long*)error)[1] = -9; ((long*)error)[2] = 5;"
WORDS = "index -9 is out of bounds for dimension 3 with size 5"


def test_errors_of_kernels(store: FileStore, path: str) -> None:
    for body, kind, words in (
        ("*error = 2;", IndexError, "index out of range"),
        (f"{OUTSIDE} *error = 2 | 1 << 4 | 3 << 8;", IndexError, WORDS),
        (f"{OUTSIDE} *error = 2 | 2 << 4 | 3 << 8;", RuntimeError, WORDS),
        (f"{OUTSIDE} *error = 2 | 3 << 4;", IndexError, "Target -9 is out of bounds"),
        ("*error = 1;", RuntimeError, "ZeroDivisionError"),
        ("*error = 77;", RuntimeError, "error"),
    ):
        call = load(plan_of(body, [], [("q", [8], "float32")]).artifact(), store).call
        with pytest.raises(kind, match=words):
            call([])


def test_outputs_of_every_kind(store: FileStore, path: str) -> None:
    s0 = symbol("s0")
    q = operand("q", [s0, 4])
    outputs: list[object] = [
        q,
        type(q)("q", "float32", (4, s0), (1, 4), 0),
        type(q)("q", "float32", (4,), (1,), multiply(s0, 2)),
        operand("x", [s0]),
        s0,
        7,
        None,
        q,
    ]
    body = "for (long i = 0; i < 4 * s[0]; i++) ((float*)p[1])[i] = i;"
    plan = plan_of(
        body, [tensor("x", [s0])], [("q", [s0, 4], "float32")], outputs, ("s0",), ["s0", "x", "u"]
    )
    plan.inputs.append(tensor("u", [1]))
    artifact = plan.artifact()
    assert artifact.entry
    x = torch.randn(6)
    a, b, c, d, e, f, g, h = load(artifact, store).call([6, x, torch.randn(1)])
    want = torch.arange(24.0).view(6, 4)
    assert torch.equal(a, want)
    assert torch.equal(b, want.t())
    assert torch.equal(c, torch.arange(12.0, 16.0))
    assert b.untyped_storage().data_ptr() == c.untyped_storage().data_ptr() == a.data_ptr()
    assert d is x
    assert (e, f, g) == (6, 7, None)
    assert h is a


def test_an_output_with_strides(store: FileStore, path: str) -> None:
    body = "for (int i = 0; i < 6; i++) ((int*)p[0])[i] = i;"
    q = operand("q", [2, 3], "int32")
    columns = type(q)("q", "int32", (3, 2), (1, 3))
    plan = plan_of(body, [], [("q", [2, 3], "int32")], [columns])
    (result,) = load(plan.artifact(), store).call([])
    assert result.stride() == (1, 3)
    assert torch.equal(result, torch.arange(6, dtype=torch.int32).view(2, 3).t())


@pytest.mark.parametrize("count", [100, MEGA])
def test_temporaries_and_workspace(store: FileStore, path: str, count: int) -> None:
    """One kernel writes the arena, the next reads it; both use scratch memory behind it."""
    loop = f"for (long i = 0; i < {count}; i++)"
    scratch = f"for (long i = 0; i < {count}; i++) workspace[i] = -1;"
    twice = Kernel(
        "twice",
        ("x", "t"),
        f"{loop} ((float*)p[1])[i] = ((float*)p[0])[i] * 2;{scratch}",
        (),
        count,
    )
    plus = Kernel(
        "plus", ("t", "q"), f"{scratch}{loop} ((float*)p[1])[i] = ((float*)p[0])[i] + 1;", (), count
    )
    plan = Planned(
        [tensor("x", [count])],
        [operand("q", [count])],
        [Step(segment([twice, plus], ("x",), ("q",), arena=4 * count + 64))],
        [twice, plus],
        [memory("t", [count]), memory("q", [count])],
        placements={"t": InArena(64)},
    )
    call = load(plan.artifact(), store).call
    x = torch.randn(count)
    for _ in range(3):
        (q,) = call([x])
        assert torch.equal(q, x * 2 + 1)


def test_many_threads_and_much_work(store: FileStore) -> None:
    """Python's lock is released for the work, so the same function runs on all threads at once."""
    call = load(add_mul(symbol("s0"), ("s0",)).artifact(), store).call
    wrong: list[object] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for count in (7, MEGA // 2, 3 * MEGA) * 3:
            x, y = torch.randn(count, generator=generator), torch.randn(count, generator=generator)
            (q,) = call([count, x, y])
            if not torch.equal(q, (x + y) * 2):
                wrong.append((seed, count))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_references_are_balanced(store: FileStore) -> None:
    call = load(add_mul().artifact(), store).call
    x, y = torch.randn(8), torch.randn(8)
    call([x, y])
    gc.collect()
    before = sys.getrefcount(x)
    for _ in range(100):
        call([x, y])
    assert sys.getrefcount(x) == before


class TestPool:
    """Memory of large outputs is reused only when nothing refers to it."""

    COUNT = MEGA

    @pytest.fixture
    def call(self, store: FileStore) -> Any:
        return load(add_mul(symbol("s0"), ("s0",)).artifact(), store).call

    def run(self, call: Any, count: int = COUNT) -> torch.Tensor:
        x = torch.ones(count)
        (q,) = call([count, x, x])
        return q  # type: ignore[no-any-return]

    def test_freed_memory_is_used_again(self, store: FileStore, call: Any) -> None:
        pool = made(store)
        pool.release_pool()
        q = self.run(call)
        place = q.data_ptr()
        assert place % 64 == 0
        del q
        assert pool.pool().kept_bytes >= 4 * MEGA
        q = self.run(call)
        assert q.data_ptr() == place
        assert pool.pool().kept_bytes == 0

    @pytest.mark.parametrize(
        "hold",
        [
            lambda q: q[5:].view(-1)[3:],
            lambda q: q.numpy(),
            lambda q: q.untyped_storage(),
            lambda q: q.detach().requires_grad_(),
            lambda q: memoryview(q.numpy()),
        ],
        ids=["view", "numpy", "storage", "detached", "memoryview"],
    )
    def test_what_somebody_holds_is_not(self, call: Any, hold: Any) -> None:
        q = self.run(call)
        place, held = q.data_ptr(), hold(q)
        del q
        gc.collect()
        other = self.run(call)
        assert other.data_ptr() != place
        del held

    def test_a_block_serves_only_what_it_fits(self, store: FileStore, call: Any) -> None:
        made(store).release_pool()
        q = self.run(call)
        place = q.data_ptr()
        del q
        assert self.run(call, self.COUNT // 2).data_ptr() != place
        assert self.run(call, self.COUNT - 1000).data_ptr() == place

    def test_the_limit_holds(self, store: FileStore, call: Any) -> None:
        pool = made(store)
        before = pool.pool().capacity
        try:
            pool.limit_pool(10 * MEGA)
            held = [self.run(call) for _ in range(5)]
            del held
            assert 0 < pool.pool().kept_bytes <= 10 * MEGA
            pool.limit_pool(0)
            assert pool.pool().kept_bytes == 0
            q = self.run(call)
            assert q.untyped_storage().resizable()
        finally:
            pool.limit_pool(before)

    def test_outputs_die_on_any_thread(self, store: FileStore, call: Any) -> None:
        queue = [self.run(call) for _ in range(8)]
        places = {q.data_ptr() for q in queue}
        threads = [threading.Thread(target=queue.pop) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        again = [self.run(call) for _ in range(8)]
        assert {q.data_ptr() for q in again} == places

    @settings(max_examples=20)
    @given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30))
    def test_memory_is_never_handed_out_twice(
        self, store: FileStore, steps: list[tuple[int, int]]
    ) -> None:
        """Outputs of several sizes are created and freed in any order; each keeps its content."""
        call = load(add_mul(symbol("s0"), ("s0",)).artifact(), store).call
        held: list[tuple[torch.Tensor, float]] = []
        for number, (size, drop) in enumerate(steps):
            count = (1 << 18) + size * 9000
            x = torch.full((count,), float(number))
            (q,) = call([count, x, x])
            held.append((q, number * 4.0))
            if drop < len(held):
                held.pop(drop)
            for output, value in held:
                assert output[0] == output[-1] == value

    def test_a_child_process_has_a_pool_of_its_own(self, store: FileStore, call: Any) -> None:
        q, x = self.run(call), torch.ones(self.COUNT)
        child = os.fork()
        if not child:
            # torch's own loops would hang here: OpenMP's threads do not survive in a child.
            del q
            (other,) = call([self.COUNT, x, x])
            os._exit(0 if other[-1] == 4 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert q[-1] == 4

    def test_resizing_is_refused_and_said(self, call: Any) -> None:
        q = self.run(call)
        with pytest.raises(RuntimeError, match="resize"):
            q.resize_(2 * self.COUNT)
        assert q.resize_(10).shape == (10,)

    def test_pooled_outputs_are_plain_tensors(self, call: Any) -> None:
        q = self.run(call)
        q.add_(1)
        assert q.is_contiguous()
        assert torch.equal(q.clone(), torch.full((self.COUNT,), 5.0))
        assert torch.equal(torch.from_numpy(q.numpy()), q)
        shared = q.share_memory_()
        assert shared.is_shared()
        assert shared[0] == 5


def test_a_unit_is_loaded_once(store: FileStore) -> None:
    from tcw.compiler.runtime.launcher import load_unit

    first = load(add_mul().artifact(), store)
    path = store.path("objects", f"{first.artifact.library}.so")
    assert load_unit(path, made(store)) is load_unit(path, made(store))


def test_a_launcher_that_cannot_be_built_is_said(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BuildFailed("g++: no libstdc++")

    monkeypatch.setattr(compiled, "launcher", fail)
    made = load(add_mul().artifact(), store)
    assert made.without_launcher == "g++: no libstdc++"
    x = torch.randn(8)
    assert torch.equal(made.call([x, x])[0], x * 4)


def test_segments_without_a_launcher_are_the_same(store: FileStore) -> None:
    artifact = load(add_mul().artifact(), store).artifact
    path = store.path("objects", f"{artifact.library}.so")
    function = python_functions(path, artifact.segments)[artifact.entry]
    x = torch.randn(8)
    assert torch.equal(function([x, x])[0], x * 4)


ON_A_CPU = """
static Held (*on_cpu)(Ints, Ints, signed char, bool);
static Held stand_in(Ints sizes, Ints strides, signed char dtype, MaybeDevice device) {
  bool asked = device.type == CUDA && device.index == 3 && device.given;
  return on_cpu(sizes, strides, asked ? dtype : 0, false);
}
extern "C" void* made(void* function, void* room) {
  on_cpu = (Held (*)(Ints, Ints, signed char, bool))function;
  device_calls.empty_strided = stand_in;
  device_calls.room = (void* (*)(unsigned long))room;
  const long sizes[] = {3, 4}, strides[] = {1, 3};
  return empty_on_gpu(2, sizes, strides, 6, 3);
}
"""


def test_a_tensor_on_a_gpu_is_made_without_the_dispatcher(tmp_path: Path) -> None:
    """By the CPU's function of the same form."""
    text, built = tmp_path / "launcher.cpp", tmp_path / "launcher.so"
    text.write_text(launcher_text() + ON_A_CPU)
    flags = (*launcher_flags(), "-o", str(built), str(text), *LAUNCHER_LIBRARIES)
    subprocess.run([*compiler_command(), *flags], check=True)
    torch_cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    on_cpu = "_ZN2at6detail17empty_strided_cpuEN3c108ArrayRefIlEES3_NS1_10ScalarTypeEb"
    found = addresses()
    assert isinstance(found, Addresses)
    calls = dict(zip(("data pointer", *TORCH), found.torch_calls, strict=True))
    made = ctypes.CDLL(str(built)).made
    made.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(made(getattr(torch_cpu, on_cpu), getattr(torch_cpu, NEW)))
    wrap = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(calls[WRAP])
    tensor = wrap(handle)
    drop = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(calls["aoti_torch_delete_tensor_object"])
    assert drop(handle) == 0
    assert (tensor.dtype, tensor.shape, tensor.stride()) == (torch.float32, (3, 4), (1, 3))
    assert tensor.fill_(2).sum() == 24
