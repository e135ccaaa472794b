"""The memory plan matches the generated wrapper."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from tcw.compiler.trace.records import Kernel, MemoryPlan
from tests.cpu.inductor.recorded import Recorded

_ALLOCATION = re.compile(r"^\s+(\w+) = empty_strided_\w+\(")
_REUSE = re.compile(r"^\s+(\w+) = (?:reinterpret_tensor\()?(\w+).*?; *(?:del (\w+))?\s*# reuse")
_FREE = re.compile(r"^\s+del ([\w, ]+)$")
_CALL = re.compile(
    r"^\s+(?:\w+ = )?(cpp_fused\w*|extern_kernels\.\w+|(?:torch\.ops|aten)\.[\w.]+)\("
)


@dataclass
class Text:
    """A wrapper, parsed with regular expressions."""

    allocated: list[str] = field(default_factory=list)
    reuses: dict[str, str] = field(default_factory=dict)
    alive: dict[str, tuple[int, int]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)


def read(wrapper: str) -> Text:
    text = Text()
    begins: dict[str, int] = {}
    body = wrapper.split("args.clear()", 1)[1].split("return (", 1)[0]
    for line in body.splitlines():
        step = len(text.calls)
        if match := _ALLOCATION.match(line):
            text.allocated.append(match[1])
            begins[match[1]] = step
        elif match := _REUSE.match(line):
            text.reuses[match[1]] = match[2]
            begins[match[1]] = step
        elif match := _FREE.match(line):
            for name in match[1].split(", "):
                if name in begins:
                    text.alive[name] = (begins[name], step - 1)
        elif match := _CALL.match(line):
            text.calls.append(match[1])
    return text


@pytest.fixture(params=["transformer", "trained", "softmax", "zoo"])
def recorded(request: pytest.FixtureRequest) -> Recorded:
    found = request.getfixturevalue(request.param)
    return found if isinstance(found, Recorded) else found.recorded


def test_plan_agrees_with_the_wrapper(recorded: Recorded) -> None:
    plans = recorded.all(MemoryPlan)
    assert len(plans) == len(recorded.wrappers)
    for plan, wrapper in zip(plans, recorded.wrappers, strict=True):
        text = read(wrapper)
        buffers = {buffer.name: buffer for buffer in plan.buffers}
        assert {
            buffer.name: buffer.reuses for buffer in plan.buffers if buffer.reuses
        } == text.reuses
        assert set(text.allocated) <= set(buffers)
        assert len(plan.steps) == len(text.calls)
        for name, (first, last) in text.alive.items():
            assert (buffers[name].first, buffers[name].last) == (first, max(first, last)), name


def test_steps_are_the_calls_of_the_wrapper(recorded: Recorded) -> None:
    kernels = {kernel.id: kernel for kernel in recorded.all(Kernel)}
    for plan, wrapper in zip(recorded.all(MemoryPlan), recorded.wrappers, strict=True):
        names = [kernels[step.split()[0]].name for step in plan.steps]
        for name, called in zip(names, read(wrapper).calls, strict=True):
            assert name.removeprefix("torch.ops.") == called.removeprefix("torch.ops.")
        for place, step in enumerate(plan.steps):
            kernel = kernels[step.split()[0]]
            assert place in (kernel.steps or (kernel.step,))


def test_peaks(recorded: Recorded) -> None:
    for plan in recorded.all(MemoryPlan):
        sizes = [buffer.bytes or 0 for buffer in plan.buffers if buffer.kind != "input"]
        assert plan.peak_bytes is not None
        assert plan.without_reuse_bytes is not None
        assert max(sizes) <= plan.peak_bytes <= sum(sizes)
        assert plan.without_reuse_bytes <= sum(sizes)


def peaks(wrapper: str, sizes: dict[str, int], in_place: set[str]) -> tuple[int, int]:
    """The peak of live bytes according to the wrapper's text, and the peak without reuse: each
    buffer is then allocated where it is made and freed after the last line that names it.

    `sizes`: bytes by buffer. The result of a call counts from that call on. `in_place`: buffers
    that are written while the one whose memory they take is still read.
    """
    body = wrapper.split("args.clear()", 1)[1]
    lines = [
        line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    stop = next(index for index, line in enumerate(lines) if line.lstrip().startswith("return ("))
    lines = lines[: stop + 1]
    owned: dict[str, int] = {}
    peak = 0
    made: dict[str, int] = {}
    last: dict[str, int] = {}
    call = 0
    for line in lines:
        if match := _REUSE.match(line):
            if match[2] in owned:
                owned[match[1]] = owned.pop(match[2])
            made[match[1]] = call
            if match[1] in in_place:
                last[match[2]] = call
            continue
        if match := _FREE.match(line):
            for name in match[1].split(", "):
                owned.pop(name, None)
            continue
        made_here = re.match(r"^\s+(\w+) = ", line)
        if made_here and made_here[1] in sizes and made_here[1] not in made:
            owned[made_here[1]] = sizes[made_here[1]]
            made[made_here[1]] = call - (0 if _ALLOCATION.match(line) or _CALL.match(line) else 1)
        for name in re.findall(r"\w+", line):
            if name in made:
                last[name] = call
        peak = max(peak, sum(owned.values()))
        call += bool(_CALL.match(line))
    live = [0] * (call + 2)
    for name, first in made.items():
        for step in range(first, max(first, last.get(name, first)) + 1):
            live[step] += sizes.get(name, 0)
    return peak, max(live)


def test_peaks_are_those_of_the_wrapper(recorded: Recorded) -> None:
    for plan, wrapper in zip(recorded.all(MemoryPlan), recorded.wrappers, strict=True):
        sizes = {b.name: b.bytes or 0 for b in plan.buffers if b.kind != "input" and not b.alias_of}
        in_place = {buffer.name for buffer in plan.buffers if buffer.inplace}
        expected = peaks(wrapper, sizes, in_place)
        assert (plan.peak_bytes, plan.without_reuse_bytes) == expected, plan.graph


def test_reuse_in_place_is_told_from_reuse_after_the_end(recorded: Recorded) -> None:
    for plan in recorded.all(MemoryPlan):
        buffers = {buffer.name: buffer for buffer in plan.buffers}
        for buffer in plan.buffers:
            if buffer.reuses:
                former = buffers[buffer.reuses]
                assert (
                    former.last >= buffer.first if buffer.inplace else former.last <= buffer.first
                )


def test_outputs_live_to_the_end_and_saved_values_are_told_apart(recorded: Recorded) -> None:
    forward = [plan for plan in recorded.all(MemoryPlan) if "/forward/" in plan.graph]
    for plan in recorded.all(MemoryPlan):
        for buffer in plan.buffers:
            if buffer.kind in ("output", "saved"):
                assert buffer.last == len(plan.steps) - 1
        assert forward or all(buffer.kind != "saved" for buffer in plan.buffers)
    for plan in forward:
        kinds = [buffer.kind for buffer in plan.buffers]
        assert kinds.count("output") == 1
        assert "saved" in kinds
