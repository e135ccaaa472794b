"""Which cache entry served which call."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._C._dynamo import eval_frame

from tcw.compiler.capture import cache_entries
from tcw.compiler.capture.cache_entries import CacheEntries, came_forward
from tcw.compiler.trace.records import FrameEnd
from tests.cpu.capture.conftest import Capture


def broken(x, factor=1.0):
    y = x.sin() * factor
    torch._dynamo.graph_break()
    return y.cos()


tells = pytest.mark.skipif(
    not hasattr(eval_frame, "set_bytecode_debugger_callback"),
    reason=f"torch {torch.__version__} has no set_bytecode_debugger_callback",
)

CALLS = [(2, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (2, 1.0), (5, 2.0), (5, 1.0), (5, 3.0)]


def grid(capture: Capture) -> list[tuple[list[str], tuple[str, ...]]]:
    """(compiled, served) of each call."""
    function = torch.compile(broken, backend="eager")
    entries = CacheEntries()
    rows = []
    for size, factor in CALLS:
        entries.begin(capture.recorder)
        capture.call(lambda size=size, factor=factor: function(torch.ones(size), factor))
        rows.append((list(capture.recorder.compiled_in_call), entries.served(capture.recorder)))
    return rows


@tells
def test_every_call_is_served_by_what_it_compiled_or_by_a_hit(capture: Capture) -> None:
    assert grid(capture) == [
        (["0/0", "1/0"], ()),
        ([], ("0/0", "1/0")),
        (["0/1", "1/1"], ()),
        ([], ("0/1", "1/1")),
        ([], ("0/1", "1/1")),
        (["0/2"], ("1/1",)),
        ([], ("0/2", "1/1")),
        ([], ("0/2", "1/1")),
    ]
    assert len(capture.all(FrameEnd)) == 5


def test_without_the_callback_only_what_is_certain(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_entries, "_watch", lambda ran: None)
    exact = [
        (["0/0", "1/0"], {"0/0", "1/0"}),
        ([], {"0/0", "1/0"}),
        (["0/1", "1/1"], set()),
        ([], {"0/1", "1/1"}),
        ([], {"0/1", "1/1"}),
        (["0/2"], {"1/1"}),
        ([], {"0/2", "1/1"}),
        ([], {"0/2", "1/1"}),
    ]
    for (compiled, served), (same, possible) in zip(grid(capture), exact, strict=True):
        assert compiled == same
        assert set(served) <= possible


def test_an_entry_that_comes_forward_is_seen_by_order_alone(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_entries, "_watch", lambda ran: None)
    function = torch.compile(lambda x, flag: x.sin() if flag else x.cos(), backend="eager")
    entries = CacheEntries()
    x = torch.ones(2)
    for flag in (True, False):
        capture.call(lambda flag=flag: function(x, flag))
    entries.begin(capture.recorder)
    capture.call(lambda: function(x, True))
    assert entries.served(capture.recorder) == ("0/0",)


@tells
def test_an_inner_function_that_serves_twice_is_named_once(capture: Capture) -> None:
    inner = torch.compile(lambda x: x * 2, backend="eager")
    entries = CacheEntries()
    capture.call(lambda: inner(torch.ones(2)))
    entries.begin(capture.recorder)
    capture.call(lambda: [inner(torch.ones(2)) for _ in range(3)])
    assert entries.served(capture.recorder) == ("0/0",)


@tells
def test_torch_is_left_as_it_was(capture: Capture) -> None:
    seen: list[str] = []
    others = lambda code: seen.append(code.co_name)  # noqa: E731
    eval_frame.set_bytecode_debugger_callback(others)
    try:
        function = torch.compile(lambda x: x * 2, backend="eager")
        entries = CacheEntries()
        entries.begin(capture.recorder)
        capture.call(lambda: function(torch.ones(2)))
        entries.served(capture.recorder)
        assert eval_frame.get_bytecode_debugger_callback() is others
        assert seen == ["<lambda>"], "a debugger of the user's goes on being told"
    finally:
        eval_frame.set_bytecode_debugger_callback(None)


def test_nothing_is_said_of_a_call_that_was_not_watched(capture: Capture) -> None:
    function = torch.compile(lambda x: x * 2, backend="eager")
    capture.call(lambda: [function(torch.ones(2)) for _ in range(2)])
    assert CacheEntries().served(capture.recorder) == ()


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=8))
def test_came_forward_names_only_entries_that_were_used(order: list[int], used: list[int]) -> None:
    before = [str(item) for item in order]
    after = list(before)
    for item in map(str, used):
        after.remove(item)
        after.insert(0, item)
    found = came_forward(before, after)
    assert set(found) <= set(map(str, used))
    if after != before:
        assert found
