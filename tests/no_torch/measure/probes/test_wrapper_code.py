"""A generated wrapper with a clock in it runs as before, each step between two readings."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.measure.probes.wrapper_code import (
    BEFORE,
    MARK,
    NOW,
    SEEN,
    CalledStep,
    NoSteps,
    ResultName,
    Rules,
    WrapperCode,
    dotted,
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


def steps_of(call: ast.Call, called: str) -> list[CalledStep]:
    """As in Inductor's wrapper: `measure.probes.inductor_probe`."""
    if (name := called.partition(".")[0]) in KERNELS:
        return [CalledStep("kernel", name)]
    if called.startswith(("extern_kernels.", "torch.ops.")):
        return [CalledStep("aten", called)]
    return [CalledStep("aten", "aten.item")] if dotted(call.func).endswith(".item") else []


def of(text: str, replaced: Collection[int] = ()) -> WrapperCode:
    rules = Rules(steps_of, replaced=replaced, named_later=True, all_variables=True)
    return instrumented(text, "generated.py", rules)


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
        ("before", 0, ["arg0_1", "buf0"]),
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


OWN = """def call(args):
    a, b = args
    args.clear()
    mm = aten_mm(a, view(b, (2, 2), (1, 2), 0))  # aten.mm.default
    if mm != (2, 1):
        mm = laid_out(mm, (2, 2), (2, 1))
    c, _ = aten_split([a, view(mm, 1)], size=view(b, 3))
    del _
    c = laid_out(c, (2,), (1,))
    segment_0(mm, c)
    d = aten_max(c)[0]
    aten_print('x')
    del a, b
    return [view(mm, 4), d]
"""
CALLED = ("aten_mm", "aten_split", "aten_max", "aten_print")


def own_code(known: Collection[str] = CALLED, finishing: Collection[str] = ("laid_out",)) -> Any:
    """Of our engine's wrapper."""

    def steps_of(_: ast.Call, called: str) -> list[CalledStep]:
        if called == "segment_0":
            return [CalledStep("kernel", name, measured=False) for name in ("nest_a", "nest_b")]
        return [CalledStep("aten", called)] if called in known else []

    return instrumented(OWN, "own.py", Rules(steps_of, finishing=finishing))


def run(code: Any = None) -> tuple[list[str], Any]:
    """The calls of the wrapper, in order, and its result."""
    calls: list[str] = []

    def known(name: str) -> Any:
        def function(*arguments: Any, **keywords: Any) -> Any:
            calls.append(f"{name}{arguments}{sorted(keywords.items())}")
            return (name, "rest") if name in ("aten_split", "aten_max") else name

        return function

    names: dict[str, Any] = {
        name: known(name) for name in (*CALLED, "view", "laid_out", "segment_0")
    }
    names[MARK] = lambda mark: calls.append(f"{'>' if mark[0] > 0 else '<'} {abs(mark[0]) - 1}")
    names[BEFORE] = lambda index, values: calls.append(f"> {index} {sorted(values)}")
    names[SEEN] = lambda index, values: calls.append(f"< {index} {sorted(values)}")
    names[NOW] = int
    exec(OWN if code is None else code, names)
    call = next(names[name] for name in ("_timed_call", "_observed_call", "call") if name in names)
    return calls, call(["a", "b"])


def test_the_clock_runs_around_a_call_and_what_lays_it_out_but_not_its_arguments() -> None:
    calls, _ = run(own_code().timed)
    assert [call.partition("(")[0] for call in calls] == [
        *("view", "> 0", "aten_mm", "laid_out", "< 0"),
        *("view", "view", "> 1", "aten_split", "laid_out", "< 1"),
        "segment_0",
        *("> 4", "aten_max", "< 4"),
        *("> 5", "aten_print", "< 5"),
        "view",
    ]


def test_what_a_call_reads_and_makes_is_seen_around_it() -> None:
    calls, _ = run(own_code().observed)
    assert [call for call in calls if call[0] in "<>"] == [
        *("> 0 ['a', 'b']", "< 0 ['a', 'b', 'mm']"),
        *("> 1 ['a', 'b', 'mm']", "< 1 ['a', 'b', 'c', 'mm']"),
        *("> 4 ['c']", "< 4 ['c', 'd']"),
        *("> 5 []", "< 5 []"),
    ]


def test_the_kernels_of_a_segment_are_steps_that_it_measures_itself() -> None:
    steps = [(step.index, step.kind, step.name) for step in own_code().steps]
    assert steps[1:5] == [
        (1, "aten", "aten_split"),
        (2, "kernel", "nest_a"),
        (3, "kernel", "nest_b"),
        (4, "aten", "aten_max"),
    ]


@given(st.sets(st.sampled_from(CALLED)), st.booleans(), st.sampled_from(["timed", "observed"]))
def test_nothing_else_changes(known: set[str], layouts: bool, form: str) -> None:
    code = own_code(known, ("laid_out",) if layouts else ())
    calls, answer = run(getattr(code, form))
    plain, expected = run()
    assert [call for call in calls if call[0] not in "<>"] == plain
    assert answer == expected


def test_the_code_of_fx_as_well() -> None:
    text = """
def forward(self, args_list):
    x, = args_list
    args_list.clear()
    split = torch.ops.aten.split.Tensor(x, 2);  x = None
    getitem = split[0];  split = None
    return (getitem,)
"""
    code = instrumented(text, "fx.py", Rules(steps_of, named_later=True), "forward")
    assert [step.name for step in code.steps] == ["torch.ops.aten.split.Tensor"]
    assert (code.reads[0], code.makes[0]) == (("x",), "split")
    assert code.results[0] == [ResultName("getitem", "split", (0,))]
