"""Recording changes no cache key: code compiled with or without recording is found by the other in
another process."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.cpu.warm import WarmStart

PROGRAM = """
import contextlib, json, os, sys
import torch
from torch._dynamo.utils import counters
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.pipeline import recording
from tcw.compiler.trace.records import Settings
from tcw.compiler.trace.writer import TraceWriter

def plain(x, w):
    return x @ w

def watched(x, w):
    return (x @ w).t() @ x

lines = []
recorder = Recorder(TraceWriter(lines.append), Settings(file="", cached=True))

def counts(function, hooks):
    counters.clear()
    with recording(recorder) if hooks else contextlib.nullcontext():
        x, w = torch.ones(4, 4), torch.ones(4, 4, requires_grad=True)
        torch.compile(function)(x, w).sum().backward()
    found = {**counters["aot_autograd"], **counters["inductor"]}
    return {key: found[key] for key in sorted(found) if key.endswith(("_hit", "_miss", "_bypass"))}

def results(first):
    return {
        "recorded second": counts(plain, hooks=not first),
        "recorded first": counts(watched, hooks=first),
        "records": [json.loads(line) for line in lines],
    }

print(json.dumps(results(first=sys.argv[1] == "first")), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def two_processes(
    tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart
) -> tuple[dict, dict]:
    """Each process compiles two functions and records one of them; the second process records the
    other one. Both are forks of one that has torch imported and has compiled nothing."""
    folder = tmp_path_factory.mktemp("cache")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}

    def result(which: str) -> dict:
        process = warm_start.start([sys.executable, "-P", str(program), which], environment, [])
        said, errors = process.communicate()
        assert process.wait(300) == 0, errors.decode()
        return json.loads(said.splitlines()[-1])

    return result("first"), result("second")


@pytest.mark.parametrize("order", ["recorded first", "recorded second"])
def test_the_second_process_hits_all_that_the_first_missed(two_processes, order: str) -> None:
    first, second = two_processes
    missed = {key.removesuffix("_miss"): count for key, count in first[order].items()}
    found = {key.removesuffix("_hit"): count for key, count in second[order].items()}
    assert all(key.endswith("_miss") for key in first[order]), first
    assert missed == found
    assert missed["autograd_cache"] == 1


def test_a_hit_of_autograds_cache_says_what_is_not_known(two_processes) -> None:
    said = [
        [record["message"] for record in process["records"] if record["record"] == "warned"]
        for process in two_processes
    ]
    assert said[0] == []
    (message,) = said[1]
    assert message.startswith("some compiles were served from torch's caches: ")
    assert "without --cached" in message
