"""Stopping before the build: the graph then runs in FX's interpreter, and nothing is built.

`compile_fx` (torch/_inductor/compile_fx.py) lowers a graph and asks
`GraphLowering.compile_to_module` for a module to call. That function then goes only as far as the
last requested stage, and returns an interpreter of AOTAutograd's graph as it was before Inductor's
last passes, which insert functions that can only be lowered. Caches are off meanwhile: an entry
without code must not be stored, and a hit would leave nothing to record.
"""

from __future__ import annotations

import types
import weakref
from typing import Any

from torch import fx

from tcw.compiler.control.hooks import RecordingHook, Uninstall, before_call, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.inductor.caches_off import caches_off
from tcw.compiler.protocol.stages import reached


def install(recorder: Recorder) -> Uninstall:
    until = recorder.settings.until
    if reached("build", until):
        return lambda: None
    from torch._inductor import compile_fx, config, cpu_vec_isa
    from torch._inductor.graph import GraphLowering

    graphs: weakref.WeakKeyDictionary[Any, fx.GraphModule] = weakref.WeakKeyDictionary()

    def keep(gm: Any, *_: Any, **__: Any) -> None:
        copied = fx.Graph()
        result = copied.graph_copy(gm.graph, {})
        copied.output(result)
        graphs[gm] = fx.GraphModule(gm, copied)

    def compile_to_module(self: Any) -> Any:
        if reached("memory", until):
            self.codegen()
        elif reached("fusion", until):
            self.init_wrapper_code()
            self._update_scheduler()
        else:
            self.scheduler = types.SimpleNamespace(nodes=[])  # compile_fx reads its nodes for logs
        runner = fx.Interpreter(graphs.get(self.module, self.module))

        def call(arguments: list[Any]) -> Any:
            values = list(arguments)
            arguments.clear()
            return runner.run(*values)

        return types.SimpleNamespace(call=call, __file__="", key="")

    stack = caches_off()
    # the vector instructions as the CPU reports them, without a trial build; extensions such as
    # AVX-512 BF16 are tried apart from that setting
    if getattr(config.cpp, "vec_isa_ok", False) is None:
        stack.enter_context(config.patch({"cpp.vec_isa_ok": True}))
    return undo_all(
        before_call(compile_fx, "_recursive_post_grad_passes", keep),
        patch(GraphLowering, "compile_to_module", compile_to_module),
        patch(cpu_vec_isa.VecISA, "check_build", lambda self, code: True),
        stack.close,
    )


HOOK = RecordingHook(
    name="stopping early",
    offers="recordings that end before code is built and run, in seconds",
    needs=(
        "torch._inductor.graph:GraphLowering.compile_to_module",
        "torch._inductor.graph:GraphLowering.codegen",
        "torch._inductor.graph:GraphLowering._update_scheduler",
        "torch._inductor.graph:GraphLowering.init_wrapper_code",
        "torch._inductor.compile_fx:_recursive_post_grad_passes",
        "torch._inductor.cpu_vec_isa:VecISA.check_build(code)",
    ),
    install=install,
    stage="passes",
    test="inductor/test_until.py",
)
