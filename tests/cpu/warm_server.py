"""The fork server: a process with torch and the worker's modules imported, which becomes workers.

`tests/cpu/warm.py` starts it as `python -P warm_server.py LISTENER LOCK` and connects, as may other
processes of the run. Each sends a request for each worker: a length, then JSON and the descriptors
that the worker is to have. A fork of this process takes over what
`python -P tcw/__main__.py --worker …` would have got, and runs `tcw/__main__.py`. This process ends
with the last connection.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib.util
import json
import os
import select
import socket
import sys
import tempfile
import time
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

ROOM = "TCW_TEST_ROOM"
"""A long variable in this process's environment. /proc/PID/environ is the text that a process was
started with. A worker writes the variables that it has of its own over this one, so that whoever
looks for the processes of a recording finds it."""
MOST_DESCRIPTORS = 32
AT_THE_FIRST_COMPILE = (
    "_dynamo.backends.inductor",
    "_dynamo.dce_extra_outputs",
    "_export.db.logging",
    "_higher_order_ops.passes.inline_invoke_subgraph",
    "_inductor.codegen.cpp_wrapper_mps",
    "_inductor.codegen.cpu_device_op_overrides",
    "_inductor.codegen.cuda.device_op_overrides",
    "_inductor.codegen.mps_device_op_overrides",
    "_inductor.codegen.mtia.device_op_overrides",
    "_inductor.codegen.python_wrapper_mtia",
    "_inductor.codegen.segmented_tree",
    "_inductor.codegen.xpu.device_op_overrides",
    "_inductor.codegen.xpu.xpu_combined_scheduling",
    "_inductor.compiler_bisector",
    "_inductor.extern_node_serializer",
    "_inductor.fx_passes.apply_gumbel_max_trick",
    "_inductor.fx_passes.efficient_conv_bn_eval",
    "_inductor.fx_passes.pad_mm",
    "_inductor.hooks",
    "_inductor.runtime.caching",
    "_subclasses.schema_check_mode",
    "distributed.tensor.experimental._attention",
    "export._leakage_detection_utils",
    "export._trace",
    "fx.experimental.validator",
    "_dynamo.repro.after_dynamo",
    "_export.passes.collect_tracepoints_pass",
    "_functorch._aot_autograd.subclass_codegen",
    "_inductor.bounds",
    "_inductor.choices",
    "_inductor.codegen.cpp_wrapper_cpu_array_ref",
    "_inductor.codegen.cpp_wrapper_gpu",
    "_inductor.codegen.cuda_combined_scheduling",
    "_inductor.codegen.halide",
    "_inductor.codegen.memory_planning",
    "_inductor.codegen.mps",
    "_inductor.codegen.pallas",
    "_inductor.codegen.wrapper_fxir",
    "_inductor.fx_passes.freezing_patterns",
    "_inductor.fx_passes.fuse_attention",
    "_inductor.fx_passes.joint_graph",
    "_inductor.fx_passes.mkldnn_fusion",
    "_inductor.fx_passes.post_grad",
    "_inductor.fx_passes.quantization",
    "export._unlift",
)
"""Modules of torch that Inductor imports then."""

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

Request = dict[str, Any]


def import_all() -> None:
    """Import what a worker has imported when it begins to load the user's file: a worker that
    records every stage, with either engine."""
    sys.path.insert(0, ROOT)
    for name in ("process", "recording", "session", "driven"):
        importlib.import_module(f"tcw.workbench.worker.{name}")
    importlib.import_module("tcw.compiler.engine.backend")
    importlib.import_module("tcw.compiler.pipeline").statuses()  # what the hooks of all stages need
    sys.path.remove(ROOT)
    prepare_inductor()
    for owner, name, stand_in in stand_ins():
        setattr(owner, name, stand_in)
    gc.collect()
    gc.freeze()  # collections of a worker neither visit nor copy what it shares with this process


def stand_ins() -> list[tuple[Any, str, Any]]:
    """An owner, a name, what takes its place: work of each compile that no test looks at, a tenth
    of all, for which another torch may lack the name; and a machine that is never too busy for a
    profile, since the tests keep every processor busy."""
    guards = importlib.import_module("torch._dynamo.guards")
    config = importlib.import_module("torch._functorch.config")
    states = importlib.import_module("torch._decomp.decompositions_for_rng").PhiloxStateTracker
    reset = getattr(states, "reset", None)
    team = importlib.import_module("tcw.compiler.measure.rounds.team").Team
    ceilings = importlib.import_module("tcw.compiler.measure.work.ceilings")

    def profile_guard_manager(root: Any, scope: Any, times: int) -> float:
        """Microseconds of a check. Torch's empties the processor's caches before: 20 ms."""
        start = time.perf_counter()
        for _ in range(times):
            root.check(scope)
        return (time.perf_counter() - start) / times * 1e6

    def reset_where_used() -> None:
        """Torch's makes twelve tensors, for random numbers of a GPU as functions of a state."""
        if config.functionalize_rng_ops:
            reset()

    wanted = (
        (guards, "profile_guard_manager", profile_guard_manager),
        (states, "reset", staticmethod(reset_where_used)),
        (team, "contended", False),
        (ceilings, "_WAITING", float("inf")),
    )
    return [one for one in wanted if hasattr(one[0], one[1])]


def prepare_inductor() -> None:
    """What Inductor does once in a process, at its first compile: two seconds of a processor.

    It builds programs to see which vectors the compiler and this processor know, and hashes torch's
    own source, Triton's library and the header of its kernels, all that it includes. The settings
    of these are among those that a worker has from this process. What starts a thread is left to
    the workers.
    """
    finders, path = list(sys.meta_path), list(sys.path)
    for name in AT_THE_FIRST_COMPILE:
        with contextlib.suppress(ImportError):  # another torch has others
            importlib.import_module(f"torch.{name}")
    importlib.import_module("sympy.tensor.tensor")  # by the first expression that is printed
    importlib.import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()
    cache = importlib.import_module("torch._inductor.codecache")
    cache.torch_key()
    with contextlib.suppress(ImportError, AttributeError):  # no Triton, or another torch
        cache.triton_key()
    with contextlib.suppress(Exception):  # no C++ compiler, or another torch has others
        # asks for the compiled header; a kernel is built when somebody calls what this returns
        cache.CppPythonBindingsCodeCache.load_pybinding_async([], "")
    register_patterns()
    # setuptools, which torch imports to build, adds some of its own
    sys.meta_path[:], sys.path[:] = finders, path


def register_patterns() -> None:
    """Those of attention and of padded products, which the first graph registers.

    The other patterns that it registers are traced with a backward, whose thread no fork has.
    """
    matcher = importlib.import_module("torch._inductor.pattern_matcher")
    passes = "torch._inductor.fx_passes"

    def register(input_device: object) -> None:
        importlib.import_module(f"{passes}.pad_mm")._pad_mm_init(input_device)
        importlib.import_module(f"{passes}.fuse_attention")._sfdp_init(input_device)

    with contextlib.suppress(AttributeError, TypeError):  # another torch has others
        matcher.init_once_fakemode(register)(sys.modules["torch"].device("cpu"))


def forget_the_compiler() -> None:
    """What Inductor has read or found out of the C++ compiler, which is another one now."""
    config = sys.modules["torch._inductor.config"]
    config.cpp.cxx = (None, os.environ.get("CXX", "g++"))  # as torch/_inductor/config.py has it
    for module in ("cpp_builder", "cpu_vec_isa"):
        for found in vars(sys.modules[f"torch._inductor.{module}"]).values():
            for one in (found, *(vars(found).values() if isinstance(found, type) else ())):
                if isinstance(one, functools._lru_cache_wrapper):
                    one.cache_clear()


def check(listener: socket.socket) -> None:
    """End this process where a fork of it would lack a thread, or have a file of somebody else's.

    OpenBLAS, which numpy loads, has threads at once; it ends them before a fork. libffi may keep
    its own library open, which forks can share.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    threads = len(os.listdir("/proc/self/task"))
    others = set(open_descriptors()) - {0, 1, 2, listener.fileno()}
    others = {
        other for other in others if "/libffi.so" not in os.readlink(f"/proc/self/fd/{other}")
    }
    if threads > 1 or others:
        sys.exit(f"what a worker imports leaves {threads} threads and open descriptors: {others}")


def open_descriptors() -> list[int]:
    """All of this process's, without the one that reads the list."""
    listed = os.listdir("/proc/self/fd")
    return [int(name) for name in listed if os.path.exists(f"/proc/self/fd/{name}")]


def take_room() -> tuple[int, int]:
    """Address and length of the variable's text, which no longer is a variable."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    start = getenv(ROOM.encode())
    length = len(os.environ.pop(ROOM))
    return start - len(ROOM) - 1, len(ROOM) + 1 + length


def serve(listener: socket.socket, lock: str) -> Request:
    """Fork for each request. Returns in a worker only."""
    room = take_room()
    initial = dict(os.environ)
    reports: dict[int, tuple[int, int]] = {}
    """By descriptor of a worker's process: its id, and where its wait status is awaited."""
    connections: dict[int, socket.socket] = {}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                poll.register(connection, select.POLLIN)
                continue
            if ready not in connections:
                poll.unregister(ready)
                os.close(ready)
                pid, report = reports.pop(ready)
                _write(report, str(os.waitpid(pid, 0)[1]))
                os.close(report)
                continue
            received = receive(connections[ready])
            if received is None:
                poll.unregister(ready)
                connections.pop(ready).close()
                if not connections:
                    end_unless_awaited(listener, lock)
                continue
            request, descriptors = received
            try:
                pid = os.fork()
            except OSError as error:
                _write(descriptors[0], f"{error}\n")
            else:
                if pid == 0:
                    for one in (listener, *connections.values()):
                        one.detach()  # else its end would close somebody's descriptor
                    become(request, descriptors, initial, room)
                    return request
                watched = os.pidfd_open(pid)
                poll.register(watched, select.POLLIN)
                reports[watched] = pid, os.dup(descriptors[0])
                _write(descriptors[0], f"{pid}\n")
            for number in descriptors:
                os.close(number)


def end_unless_awaited(listener: socket.socket, lock: str) -> None:
    """Nobody connects without the lock."""
    with open(lock, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not select.select([listener], [], [], 0)[0]:
            os._exit(0)


def _write(report: int, text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the test has gone on without it
        os.write(report, text.encode())


def receive(connection: socket.socket) -> tuple[Request, list[int]] | None:
    """The next request; None where there is none any more."""
    head, descriptors, _, _ = socket.recv_fds(connection, 4, MOST_DESCRIPTORS)
    data = head
    while head and len(data) < 4 + int.from_bytes(head, "big"):
        part = connection.recv(1 << 16)
        if not part:
            break
        data += part
    if len(data) < 4 or len(data) < 4 + int.from_bytes(head, "big"):
        for number in descriptors:
            os.close(number)
        return None
    return json.loads(data[4:]), descriptors


def become(
    request: Request, descriptors: list[int], initial: dict[str, str], room: tuple[int, int]
) -> None:
    """Take over what a process that is started gets from the one that starts it."""
    os.setsid()
    _take_descriptors(request["numbers"], descriptors[1:])
    environment: dict[str, str] = request["environment"]
    os.environ.clear()
    os.environ.update(environment)
    _show_environment(environment, initial, room)
    if environment.get("CXX") != initial.get("CXX"):
        forget_the_compiler()
    time.tzset()
    tempfile.tempdir = None
    os.chdir(request["folder"])
    os.umask(request["umask"])
    sys.argv = list(request["arguments"])
    sys.orig_argv = [sys.executable, "-P", *sys.argv]
    # as a new process: drawn by the system
    sys.modules["torch"].default_generator.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _take_descriptors(numbers: list[int], descriptors: list[int]) -> None:
    """Have `descriptors` under these numbers, and no other but standard input."""
    beyond = max(numbers) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, beyond) for descriptor in descriptors]
    for wanted, number in zip(numbers, moved, strict=True):
        os.dup2(number, wanted)
    for number in set(open_descriptors()) - {0, *numbers}:
        os.close(number)


def _show_environment(
    environment: dict[str, str], initial: dict[str, str], room: tuple[int, int]
) -> None:
    own = [f"{name}={text}" for name, text in environment.items() if initial.get(name) != text]
    data = b"".join(os.fsencode(one) + b"\0" for one in own)
    start, length = room
    if len(data) > length:
        raise OverflowError(f"{ROOM} has no room for {len(data)} bytes")
    ctypes.memset(start, 0, length)
    ctypes.memmove(start, data, len(data))


def main_module(path: str) -> ModuleType:
    """A `__main__` as Python makes it for a script, which is not run yet."""
    made = ModuleType("__main__")
    made.__dict__.update(
        __file__=path,
        __cached__=None,
        __builtins__=sys.modules["builtins"],
        __loader__=SourceFileLoader("__main__", path),
    )
    sys.modules["__main__"] = made
    return made


if __name__ == "__main__":
    import_all()
    _listener = socket.socket(fileno=int(sys.argv[1]))
    check(_listener)
    _request = serve(_listener, sys.argv[2])
    _before = sys.modules["__main__"]
    """Kept alive, with what this file binds."""
    _door = _request["arguments"][0]
    with open(_door, "rb") as _stream:
        _code = compile(_stream.read(), _door, "exec", dont_inherit=True)
    exec(_code, vars(main_module(_door)))
