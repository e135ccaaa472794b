"""A generated wrapper with a clock in it runs as before, each step between two readings."""

from __future__ import annotations

import traceback
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from tcw.compiler.measure.probes.wrapper_code import (
    BEFORE,
    MARK,
    NOW,
    SEEN,
    NoSteps,
    ResultName,
    WrapperCode,
    instrumented,
)

FUNCTION = """
cpp_add_0 = async_compile.cpp_pybinding([], r'''...''')

def true_graph_0(args):
    arg0_1, = args
    args.clear()
    cpp_add_0(arg0_1)
    return (arg0_1, )

def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((2, ), (1, ))
    extern_kernels.mm(arg0_1, reinterpret_tensor(arg0_1, (2, )), out=buf0)
    buf1 = torch.ops.aten.sort.stable(torch.ops.aten.neg.default(buf0), stable=False)
    cpp_add_0(buf0)
    buf2 = buf1[0]
    buf3 = buf1[1]
    del buf1
    buf4 = buf2; del buf2  # reuse
    triton_mul_1.run(buf4, stream=get_raw_stream(0))
    if buf3.item():
        true_graph_0_args = [arg0_1, ]
        buf5 = true_graph_0(true_graph_0_args)
    return (buf4, )
"""

METHOD = """
def partition_0(args):
    triton_mul_1.run(*args)
    return (3, )

def partition_1(args):
    triton_mul_1.run(*args)
    return (4, )

class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        partition0_args = [1]
        (buf0, ) = self.partitions[0](partition0_args)
        assert_alignment(buf0)
        partition1_args = [2]
        (buf1, ) = self.partitions[1](partition1_args)
        return (buf0, buf1)

runner = Runner(partitions=[partition_0, partition_1])
call = runner.call
"""
KERNELS = ("cpp_add_0", "triton_mul_1")


class World:
    """The globals of a generated module, which log their calls; and a clock's functions."""

    def __init__(self, true: bool = True) -> None:
        self.said: list[Any] = []
        tensor = SimpleNamespace(item=lambda: self.said.append("item") or true)
        aten = SimpleNamespace(
            sort=SimpleNamespace(stable=self.call("sort", ("values", tensor))),
            neg=SimpleNamespace(default=self.call("neg", "negative")),
        )
        self.names: dict[str, Any] = {
            "cpp_add_0": self.call("cpp_add_0"),
            "triton_mul_1": SimpleNamespace(run=self.call("triton_mul_1")),
            "extern_kernels": SimpleNamespace(mm=self.call("mm")),
            "torch": SimpleNamespace(ops=SimpleNamespace(aten=aten)),
            "assert_alignment": self.fail,
            "empty_strided_cpu": lambda *sizes: "memory",
            "reinterpret_tensor": self.call("reinterpret"),
            "get_raw_stream": self.call("stream"),
            MARK: self.mark,
            NOW: int,
            BEFORE: lambda index, found: self.said.append(("before", index, sorted(found))),
            SEEN: lambda index, found: self.said.append(("after", index, sorted(found))),
        }

    def call(self, name: str, answer: Any = None) -> Any:
        def called(*arguments: Any, **keyword: Any) -> Any:
            self.said.append(name)
            return answer

        return called

    def mark(self, told: tuple[int, int]) -> None:
        number, _ = told
        self.said.append(("start" if number > 0 else "stop", abs(number) + 10))

    def fail(self, tensor: Any) -> None:
        raise ValueError("planned")

    def run(self, code: Any, name: str, *arguments: Any) -> Any:
        made: dict[str, Any] = {}
        exec(code, self.names, made)
        self.names.update(made)
        return made[name](*arguments)


def of(text: str, replaced: Collection[int] = ()) -> WrapperCode:
    return instrumented(text, "generated.py", KERNELS, replaced)


def test_steps_are_in_the_order_of_the_code_with_those_of_subgraphs_where_they_are_called() -> None:
    assert [(s.index, s.kind, s.name, s.within) for s in of(FUNCTION).steps] == [
        (0, "aten", "extern_kernels.mm", ""),
        (1, "aten", "torch.ops.aten.neg.default", ""),
        (2, "aten", "torch.ops.aten.sort.stable", ""),
        (3, "kernel", "cpp_add_0", ""),
        (4, "kernel", "triton_mul_1", ""),
        (5, "aten", "aten.item", ""),
        (6, "kernel", "cpp_add_0", "true_graph_0"),
    ]
    assert of(FUNCTION).steps[4].text == "triton_mul_1.run(buf4, stream=get_raw_stream(0))"


def test_a_step_is_started_when_its_arguments_are_there_and_stopped_when_it_is_done() -> None:
    world = World()
    assert world.run(of(FUNCTION).timed, "_timed_call", ["x"]) == ("values",)
    assert world.said == [
        *("reinterpret", ("start", 11), "mm", ("stop", 11)),
        # an argument's own step is inside none: `stable=False` is the last argument
        *(("start", 12), "neg", ("stop", 12), ("start", 13), "sort", ("stop", 13)),
        *(("start", 14), "cpp_add_0", ("stop", 14)),
        *("stream", ("start", 15), "triton_mul_1", ("stop", 15)),
        *(("start", 16), "item", ("stop", 16)),
        *(("start", 17), "cpp_add_0", ("stop", 17)),
    ]


def test_what_is_not_reached_is_not_timed() -> None:
    world = World(true=False)
    world.run(of(FUNCTION).timed, "_timed_call", ["x"])
    assert ("start", 17) not in world.said
    assert ("stop", 16) in world.said


def test_what_a_step_reads_and_writes_is_seen_before_and_after_it() -> None:
    world = World()
    world.run(of(FUNCTION).observed, "_observed_call", ["x"])
    told = [one for one in world.said if one[0] in ("before", "after")]
    assert told[:2] == [
        ("before", 0, ["arg0_1", "args", "buf0"]),
        ("after", 0, ["arg0_1", "args", "buf0"]),
    ]
    # one statement, two steps: what it assigns is there after it
    assert [one[:2] for one in told[2:6]] == [
        ("before", 1),
        ("before", 2),
        ("after", 1),
        ("after", 2),
    ]
    assert "buf1" not in told[3][2]
    assert "buf1" in told[5][2]
    assert [one[:2] for one in told[-4:]] == [
        ("before", 5),
        ("after", 5),
        ("before", 6),
        ("after", 6),
    ]


def test_parts_of_a_result_are_known_by_the_names_that_they_get_later() -> None:
    assert of(FUNCTION).results[2] == [
        ResultName("buf2", "buf1", (0,)),
        ResultName("buf3", "buf1", (1,)),
    ]


def test_partitions_are_instrumented_and_those_that_something_else_runs_are_steps() -> None:
    steps = [(step.name, step.within) for step in of(METHOD).steps]
    assert steps == [("triton_mul_1", "partition_0"), ("triton_mul_1", "partition_1")]
    code = of(METHOD, replaced=[0])
    assert code.method
    assert [(step.name, step.within) for step in code.steps] == [
        ("partition_0", ""),
        ("triton_mul_1", "partition_1"),
    ]
    world = World()
    world.names["assert_alignment"] = lambda tensor: None
    runner = SimpleNamespace(partitions=[lambda arguments: ("graph",), None])
    assert world.run(code.timed, "_timed_call", runner, []) == ("graph", 4)
    assert world.said == [
        ("start", 11),
        ("stop", 11),
        ("start", 12),
        "triton_mul_1",
        ("stop", 12),
    ]


@pytest.mark.parametrize("form", ["timed", "observed"])
def test_an_error_is_on_the_line_of_the_generated_module(form: str) -> None:
    code = of(METHOD, replaced=[0, 1])
    runner = SimpleNamespace(partitions=[lambda arguments: ("graph",)] * 2)
    with pytest.raises(ValueError, match="planned") as raised:
        World().run(getattr(code, form), f"_{form}_call", runner, [])
    places = [(f.filename, f.lineno) for f in traceback.extract_tb(raised.tb)]
    line = METHOD.splitlines().index("        assert_alignment(buf0)") + 1
    assert ("generated.py", line) in places


def test_a_wrapper_in_cpp_has_no_steps() -> None:
    with pytest.raises(NoSteps, match=r"C\+\+"):
        of("call = _wrap_func(module.inductor_entry_cpp)\n")
