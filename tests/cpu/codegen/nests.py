"""Compile nests with the C++ emitter and run them on the memory of the reference interpreter."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from functorch.compile import aot_function
from torch.fx.node import map_aggregate

from tcw.compiler.codegen.choices import Ask, Chooser
from tcw.compiler.codegen.cpp.cpp_unit import assemble
from tcw.compiler.codegen.cpp.isa import COMPILE_FLAGS, Isa
from tcw.compiler.codegen.cpp.nests import emit
from tcw.compiler.codegen.cpp.vocabulary import DIVISION_BY_ZERO, INDEX_OUT_OF_RANGE, Vocabulary
from tcw.compiler.codegen.unit import Function, Unit, buffer_dtypes
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.weights import CPU, GPU, Machine
from tcw.compiler.gpu.retarget import DEVICE, retarget
from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.interpreter.state import State
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.loops.sizes import evaluate
from tcw.compiler.lowering.driver import lower
from tcw.compiler.rewrites.decompositions import decompositions
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.rewrites.wide_sums import wide_sums
from tcw.compiler.runtime.toolchain import instruction_set
from tests.cpu.codegen.units import COMPILER, compiler_command
from tests.cpu.lowering.harness import settings_of_aot

GOMP = next(Path(torch.__file__).parent.glob("lib/libgomp*"))


def build(source: str, isa: Isa, *, warnings: bool = True) -> ctypes.CDLL:
    """Compile a unit and load it; fails with what the compiler said."""
    folder = Path(tempfile.mkdtemp(prefix="nests"))
    text, library = folder / "unit.cpp", folder / "unit.so"
    text.write_text(source)
    command = [
        *compiler_command(),
        *COMPILE_FLAGS,
        *isa.flags,
        "-Wall",
        "-Wno-unused",
        "-Wno-tautological-compare",
        "-Wno-bitwise-instead-of-logical",  # clang's, of bools without a branch
    ]
    command += ["-std=c++17", "-fPIC", "-shared", str(text), "-o", str(library), str(GOMP), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000] + source
    if warnings:
        assert "warning" not in done.stderr, done.stderr[:4000] + source
    loaded = ctypes.CDLL(str(library))
    if not os.environ.get("KEEP_UNITS"):
        text.unlink()
        library.unlink()
        folder.rmdir()
    return loaded


class Kernel:
    """A compiled function."""

    def __init__(self, library: ctypes.CDLL, name: str, function: Function) -> None:
        self.entry = getattr(library, f"entry_{name}")
        self.function = function

    def __call__(self, memory: dict[str, torch.Tensor], sizes: dict[str, int]) -> int:
        """Run on these flat tensors; returns the error code."""
        function = self.function
        pointers = [memory[name].data_ptr() for name in function.pointers]
        table = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
        numbers = [sizes[name] for name in function.sizes]
        longs = (ctypes.c_long * max(len(numbers), 1))(*numbers)
        wanted = evaluate(function.workspace_bytes, sizes)
        space = torch.full((wanted + 128,), 113, dtype=torch.uint8)
        start = -space.data_ptr() % 64
        error = (ctypes.c_int * 8)()
        self.entry(table, longs, ctypes.c_void_p(space.data_ptr() + start), error)
        assert (space[wanted + start :] == 113).all(), "written beyond the workspace"
        return int(error[0])


def entries(made: Unit) -> str:
    """Every function under a name that can be looked up."""
    names = dict.fromkeys(name for name, _ in made.kernels.values())
    parameters = "void** p, long* s, char* w, int* e"
    lines = [
        f'extern "C" void entry_{name}({parameters}) {{ {name}(p, s, w, e); }}' for name in names
    ]
    return "\n".join(lines)


def compiled(
    nest: Nest, dtypes: dict[str, str], isa: Isa | None = None, shared: Sequence[str] = ()
) -> Kernel:
    """One nest."""
    isa = instruction_set(COMPILER, isa)
    vocabulary = Vocabulary(isa)
    made = assemble([(nest, emit(nest, dtypes, vocabulary, shared=shared))], vocabulary)
    library = build(made.code + entries(made), isa)
    return Kernel(library, *made.kernels[nest.name])


class CompiledProgram:
    """A program whose nests run as C++, its calls as ATen."""

    def __init__(self, program: Program, kernels: dict[str, Kernel]) -> None:
        self.program = program
        self.kernels = kernels

    def state(self, arguments: Sequence[Any], constants: dict[str, Any] | None = None) -> State:
        state = State(self.program.graph, arguments, constants)
        for memory in self.program.memories.values():
            if memory.name not in state.memory:
                state.allocate(memory.name, memory.dtype, memory.size)
        return state

    def run(self, arguments: Sequence[Any], constants: dict[str, Any] | None = None) -> list[Any]:
        """The outputs; raises what an error code stands for."""
        with torch.no_grad():
            state = self.state(arguments, constants)
            for step in self.program.steps:
                if isinstance(step, Call):
                    state.call(step)
                    continue
                error = self.kernels[step.name](state.memory, state.sizes)
                if error == DIVISION_BY_ZERO:
                    raise ZeroDivisionError("integer division by zero")
                if error & 15 == INDEX_OUT_OF_RANGE:
                    raise IndexError("index out of range")
            return state.outputs()


def compile_programs(
    found: Sequence[Program], isa: Isa | None = None, ask: Ask | None = None
) -> list[CompiledProgram]:
    """Many programs in one unit: one run of the compiler. `ask` may want nests otherwise."""
    isa = instruction_set(COMPILER, isa)
    vocabulary = Vocabulary(isa)
    functions = []
    for number, program in enumerate(found):
        dtypes = buffer_dtypes(program)
        for step in program.steps:
            if isinstance(step, Nest):
                chooser = None if ask is None else Chooser(ask, program.graph.name)
                function = emit(step, dtypes, vocabulary, chooser=chooser)
                functions.append((replace(step, name=f"{number}.{step.name}"), function))
    made = assemble(functions, vocabulary)
    library = build(made.code + entries(made), isa) if made.kernels else None
    kernels = {name: Kernel(library, *kept) for name, kept in made.kernels.items() if library}
    return [
        CompiledProgram(
            program,
            {s.name: kernels[f"{number}.{s.name}"] for s in program.steps if isinstance(s, Nest)},
        )
        for number, program in enumerate(found)
    ]


_traced: dict[Any, list[Program]] = {}


def programs(
    fn: Callable[..., Any], *args: Any, dynamic: bool = False, machine: Machine = CPU
) -> list[Program]:
    """What the engine makes of a function: its forward graph (and its backward).

    A function without variables of its surroundings is traced once for tensors that look alike;
    the defaults of its parameters are plain values.
    """
    code = getattr(fn, "__code__", None)
    if code is None or fn.__closure__:
        return _programs(fn, args, dynamic, machine)
    memory = [arg.untyped_storage().data_ptr() for arg in args if isinstance(arg, torch.Tensor)]
    shared = tuple(memory.index(one) for one in memory)
    alike = code, repr(fn.__defaults__), tuple(_look(arg) for arg in args), shared, dynamic, machine
    if alike not in _traced:
        _traced[alike] = _programs(fn, args, dynamic, machine)
    return _traced[alike]


def _look(arg: Any) -> tuple[Any, ...]:
    """All of an argument that its graph depends on."""
    if not isinstance(arg, torch.Tensor):
        return type(arg), arg
    return arg.dtype, tuple(arg.shape), arg.stride(), arg.storage_offset(), arg.requires_grad


def _programs(
    fn: Callable[..., Any], args: Sequence[Any], dynamic: bool, machine: Machine
) -> list[Program]:
    found: list[Program] = []

    def compiler(module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        if machine is GPU:
            module = _for_gpu(module, inputs)
        program = fuse(lower(module, f"graph{len(found)}"), machine=machine).program
        found.append(program)
        return module.forward  # type: ignore[no-any-return]

    with torch.no_grad(), settings_of_aot():
        aot_function(
            fn,
            fw_compiler=compiler,
            bw_compiler=compiler,
            decompositions=decompositions(),
            keep_inference_input_mutations=True,
            dynamic=dynamic,
        )(*args)
    return found


def _for_gpu(module: Any, inputs: Sequence[Any]) -> Any:
    """The graph that a GPU gets, except that what ATen calls allocate is on the CPU."""
    moved, _ = retarget(module, inputs)
    wide_sums(Subject(moved))
    for node in moved.graph.nodes:
        node.args = map_aggregate(node.args, _here)
        node.kwargs = map_aggregate(node.kwargs, _here)
    return moved


def _here(value: Any) -> Any:
    return torch.device("cpu") if value == DEVICE else value


def digest(tensors: Sequence[Any]) -> str:
    """A hash of the bits."""
    total = hashlib.sha256()
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            total.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
