"""`tcw check --executor ray` without Ray, and what a cluster gives back."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tcw.compiler.trace.records import Settings
from tcw.workbench.check.on_ray import NoRay, OnRay
from tests.block_trace import block_trace

SETTINGS = Settings(file="/project/block.py", overrides={"a/fuse/x+y": "apart"})


class Cluster(SimpleNamespace):
    """Ray, as far as it is used: every task is done at once, in this process."""

    def __init__(self, given: object) -> None:
        super().__init__(given=given, tasks=[], cancelled=[], pending=False)

    def is_initialized(self) -> bool:
        return True

    def remote(self, function: object) -> Any:
        task = SimpleNamespace(remote=lambda *given: self.tasks.append(given) or len(self.tasks))
        return SimpleNamespace(options=lambda **_: task)

    def wait(self, tasks: list[int], timeout: float) -> tuple[list[int], list[int]]:
        return ([], tasks) if self.pending else (tasks, [])

    def get(self, task: int) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def cancel(self, task: int) -> None:
        self.cancelled.append(task)


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(NoRay, match=r"pip install 'tcw\[ray\]'"):
        OnRay(1)


def test_a_trace_comes_back_and_settings_go_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = b"".join(msgspec.json.encode(one) + b"\n" for one in block_trace())
    cluster = Cluster(trace)
    monkeypatch.setitem(sys.modules, "ray", cluster)
    recording, end = OnRay(1)(SETTINGS, "main", threading.Event())
    assert end.status == "ok"
    assert recording.kernels
    ((settings, revision),) = cluster.tasks
    assert msgspec.json.decode(settings, type=Settings) == SETTINGS
    assert revision == "main"


def test_a_machine_that_is_lost_fails_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", Cluster(RuntimeError("node died\nmore")))
    _, end = OnRay(1)(SETTINGS, "", threading.Event())
    assert (end.status, end.reason) == ("crashed", "on the cluster: RuntimeError: node died")


def test_an_interrupt_cancels_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(b"")
    cluster.pending = True
    monkeypatch.setitem(sys.modules, "ray", cluster)
    stop = threading.Event()
    stop.set()
    assert OnRay(1)(SETTINGS, "", stop).end.status == "interrupted"
    assert cluster.cancelled == [1]
