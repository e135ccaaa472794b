from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import Bytecode, Location, StackValue, Step, Text
from tcw.viewers.recording import Recording
from tcw.viewers.summary.steps import EVERY, StepTrack, book_of, instructions


@dataclass
class Function:
    """A function that a pretended Dynamo traces, and what the record before told of it."""

    name: str
    ip: int = 0
    stack: list[StackValue] = field(default_factory=list)
    locals: dict[str, StackValue] = field(default_factory=dict)
    told_stack: list[StackValue] = field(default_factory=list)
    told_locals: dict[str, StackValue] = field(default_factory=dict)


@dataclass
class Snapshot:
    functions: list[str]
    stack: list[StackValue]
    locals: dict[str, StackValue]
    nodes: list[str]


class Dynamo:
    """Runs made-up instructions and writes the records that `compiler/capture/steps.py` would."""

    def __init__(self) -> None:
        self.frames = [Function("forward")]
        self.nodes: list[str] = []
        self.steps: list[Step] = []
        self.snapshots: list[Snapshot] = []
        self._told_nodes = 0
        self._renamed: dict[str, str] = {}
        self._count = 0

    def tell(self, opcode: str) -> None:
        frame = self.frames[-1]
        shared = 0
        for old, new in zip(frame.told_stack, frame.stack, strict=False):
            if old is not new:
                break
            shared += 1
        changed = {
            name: value
            for name, value in frame.locals.items()
            if frame.told_locals.get(name) is not value
        }
        self.steps.append(
            Step(
                compile_id="0/0",
                attempt=0,
                step=len(self.steps),
                depth=len(self.frames) - 1,
                function=frame.name,
                location=Location(file=f"{frame.name}.py", line=frame.ip + 1),
                ip=frame.ip,
                opcode=opcode,
                popped=len(frame.told_stack) - shared,
                pushed=tuple(frame.stack[shared:]),
                set_locals=changed,
                deleted_locals=tuple(n for n in frame.told_locals if n not in frame.locals),
                nodes=tuple(self.nodes[self._told_nodes :]),
                renamed=self._renamed,
            )
        )
        self._told_nodes, self._renamed = len(self.nodes), {}
        frame.told_stack, frame.told_locals = frame.stack[:], dict(frame.locals)
        self.snapshots.append(
            Snapshot(
                [one.name for one in self.frames],
                frame.stack[::-1],
                dict(frame.locals),
                self.nodes[:],
            )
        )
        frame.ip += 1

    def value(self) -> StackValue:
        self._count += 1
        return StackValue(kind="Constant", value=str(self._count))

    def run(self, opcode: str, argument: int) -> None:
        frame = self.frames[-1]
        if opcode == "RETURN_VALUE" and len(self.frames) == 1:
            opcode = "NOP"
        self.tell(opcode)
        if opcode == "CALL":
            name = ("forward", "linear")[argument % 2]
            self.frames.append(Function(name, locals={"self": self.value()}))
        elif opcode == "RETURN_VALUE":
            self.frames.pop()
            self.frames[-1].stack.append(self.value())
        elif opcode == "TWICE":
            self.frames.append(Function("linear", locals={"self": self.value()}))
            self.tell("RETURN_VALUE")
            self.frames[-1] = Function("linear", locals={"x": self.value()})
            self.tell("RETURN_VALUE")
            self.frames.pop()
        elif opcode == "LOAD":
            frame.stack.extend(self.value() for _ in range(argument))
        elif opcode == "POP":
            del frame.stack[max(0, len(frame.stack) - argument) :]
        elif opcode == "STORE_FAST":
            frame.locals["abc"[argument % 3]] = self.value()
        elif opcode == "DELETE_FAST":
            frame.locals.pop("abc"[argument % 3], None)
        elif opcode == "NODE":
            self.nodes.append(f"node_{len(self.nodes)}")
        elif opcode == "NAME" and self.nodes and self._told_nodes == len(self.nodes):
            old = self.nodes[-1]
            self._count += 1
            self.nodes[-1] = f"named_{self._count}"
            self._renamed = {old: self.nodes[-1]}


OPCODES = (
    "CALL", "RETURN_VALUE", "TWICE", "LOAD", "POP", "STORE_FAST", "DELETE_FAST", "NODE", "NAME",
)  # fmt: skip
PROGRAMS = st.lists(st.tuples(st.sampled_from(OPCODES), st.integers(0, 3)), max_size=200)


def traced(program: list[tuple[str, int]]) -> Dynamo:
    dynamo = Dynamo()
    for opcode, argument in program:
        dynamo.run(opcode, argument)
    dynamo.tell("NOP")
    return dynamo


@given(PROGRAMS, st.lists(st.integers(0, 10_000), max_size=12))
def test_the_state_is_that_of_dynamo_wherever_one_looks(
    program: list[tuple[str, int]], visits: list[int]
) -> None:
    """Forwards step by step, then to and fro."""
    dynamo = traced(program)
    book = book_of(Recording(dynamo.steps))
    count = len(dynamo.steps)
    order = [*range(count), *(visit % count for visit in visits if count)]
    for index in order:
        state = book.state(dynamo.steps[index])
        expected = dynamo.snapshots[index]
        assert state is not None
        assert [frame.function for frame in state.frames] == expected.functions
        assert state.stack == expected.stack
        assert state.locals == expected.locals
        assert list(state.nodes) == expected.nodes


@given(PROGRAMS)
def test_what_an_instruction_adds_is_what_is_there_after_it(
    program: list[tuple[str, int]],
) -> None:
    dynamo = traced(program)
    book = book_of(Recording(dynamo.steps))
    for index, step in enumerate(dynamo.steps):
        later = range(index + 1, len(dynamo.steps))
        after = next((i for i in later if dynamo.steps[i].depth <= step.depth), None)
        state = book.state(step)
        assert state is not None
        if after is None:
            assert state.coming is None
            continue
        before, there = len(dynamo.snapshots[index].nodes), len(dynamo.snapshots[after].nodes)
        assert state.coming is not None
        assert list(state.coming) == dynamo.nodes[before:there]


def step(number: int, depth: int = 0, function: str = "forward", **more: object) -> Step:
    fields: dict[str, object] = {"ip": number, "opcode": "NOP", **more}
    place = Location(file="model.py", line=number + 1)
    return Step(
        compile_id="0/0",
        attempt=0,
        step=number,
        depth=depth,
        function=function,
        location=place,
        **fields,  # type: ignore[arg-type]
    )


def test_a_generator_goes_on_in_its_frame() -> None:
    value = StackValue(kind="Constant", value="1")
    steps = [
        step(0),
        step(1, 1, "items", ip=0, set_locals={"n": value}),
        step(2, 1, "items", ip=3, opcode="YIELD_VALUE", pushed=(value,)),
        step(3, ip=1),
        step(4, 1, "items", ip=4),
    ]
    state = book_of(Recording(steps)).state(steps[-1])
    assert state is not None
    assert state.locals == {"n": value}
    assert state.stack == [value]


def test_two_generators_of_one_function_keep_apart_what_they_hold() -> None:
    one, two = StackValue(kind="Constant", value="1"), StackValue(kind="Constant", value="2")
    steps = [
        step(0, frame=0),
        step(1, 1, "items", ip=3, opcode="YIELD_VALUE", pushed=(one,), frame=1),
        step(2, 1, "items", ip=3, opcode="YIELD_VALUE", pushed=(two,), frame=2),
        step(3, 1, "items", ip=4, pushed=(one,), frame=1),
    ]
    states = [book_of(Recording(steps)).state(one) for one in steps]
    assert [state.stack for state in states if state is not None] == [[], [one], [two], [one]]


def test_a_recording_that_grows_is_read_once() -> None:
    recording = Recording([step(0)])
    book = book_of(recording)
    recording.feed([step(1, nodes=("a",))])
    assert book_of(recording) is book
    state = book.state(recording.all(Step)[1])
    assert state is not None
    assert list(state.nodes) == ["a"]


def test_a_frame_ends_those_that_are_deeper_in_whatever_order_they_came() -> None:
    """As in a trace in which the depth jumps."""
    track = StepTrack("0/0", 0)
    for number, depth in enumerate((0, 2, 3, 1)):
        track.add(step(number, depth, f"f{number}", ip=0))
    assert list(track._tip) == [0, 1]


def test_each_engine_and_run_has_its_own_steps() -> None:
    first, second = step(0), step(0)
    book = book_of(Recording([first, second]))
    assert len(book.tracks) == 2
    assert book.state(step(0)) is None


def test_no_checkpoint_copies_what_only_grows() -> None:
    """Ten thousand steps keep as many names as there are nodes."""
    track = StepTrack("0/0", 0)
    for number in range(10_000):
        track.add(step(number, nodes=(f"n{number}",), ip=1))
    assert len(track._checkpoints) == 10_000 // EVERY + 1
    assert all(not frames[0].stack for _, frames in track._checkpoints)
    state = track.state(7_000)
    assert len(state.nodes) == 7_001
    assert state.nodes[-1] == "n7000"


def test_the_code_of_a_frame_is_the_one_whose_instructions_ran() -> None:
    place = Location(file="model.py", line=1, end_line=9)
    texts = ["0 LOAD_CONST True\n1 NOP", "0 RESUME 0\n1 NOP"]
    codes = [Bytecode(function="forward", location=place, text=f"t{number}") for number in range(2)]
    records = [
        *(Text(hash=f"t{number}", body=body) for number, body in enumerate(texts)),
        *codes,
        step(0, opcode="RESUME", argument="0"),
        step(1),
    ]
    recording = Recording(records)
    book = book_of(recording)
    state = book.state(recording.all(Step)[1])
    assert state is not None
    assert book.bytecode(state.frame, recording) is codes[1]
    assert book.line(codes[1], 1, "NOP", "") == 2


def test_an_argument_with_a_line_end_stays_one_instruction() -> None:
    found = instructions("0 RESUME 0\n1 LOAD_CONST a\nb\n2 RETURN_VALUE")
    assert found == (("RESUME", "0"), ("LOAD_CONST", "a\nb"), ("RETURN_VALUE", ""))
