"""A recorded program compiles as an unrecorded one: the same keys of torch's caches, the same
settings. Keys are the names of what torch wrote into its cache folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tcw.compiler.trace.records import CacheLookup
from tests.cpu.command_line import Done
from tests.cpu.test_run import recordings, run, started, write

PROGRAM = """
    import json
    import torch
    import torch._dynamo.config as dynamo
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    inductor.cpp.simdlen = 0
    dynamo.cache_size_limit = 5

    def settings():
        found = {}
        for module in (dynamo, functorch, inductor):
            for name, value in module.get_config_copy().items():
                if not callable(value):
                    found[f"{module.__name__}.{name}"] = repr(value)
        return found

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 4)

        def forward(self, x):
            return torch.softmax(self.layer(x) * 2, -1)

    torch.manual_seed(0)
    model = Net()
    compiled = torch.compile(model)
    for rows in (4, 6):
        compiled(torch.randn(rows, 8)).sum().backward()

    @torch.compile(dynamic=True)
    def rest(x):
        return x.sin() + 1

    with torch.no_grad():
        rest(torch.randn(5))

    seen = []

    def spy(graph, inputs):
        seen.append(settings())  # while Dynamo compiles
        return graph

    torch.compile(lambda x: x + 2, backend=spy)(torch.randn(3))
    print(json.dumps([settings(), *seen]))
"""
"""Forward, backward, a second size, and a graph without gradients."""


def keys(folder: Path) -> dict[str, set[str]]:
    """Of each of torch's caches in a folder."""
    return {
        "fx graph": {path.name for path in (folder / "fxgraph").glob("*/*")},
        "aot autograd": {path.name for path in (folder / "aotautograd").glob("*")},
    }


def environment(cache: Path) -> dict[str, str]:
    """`PYTHONHASHSEED`: sets among the settings are printed in one order."""
    triton = str(cache / "triton")
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(cache), "TRITON_CACHE_DIR": triton, "PYTHONHASHSEED": "0",
    }  # fmt: skip


@pytest.fixture(scope="module")
def unrecorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """A run without tcw, and its folder, with the caches that it filled in `cache`.

    Paths are settings too: all runs are of the program in this folder.
    """
    folder = tmp_path_factory.mktemp("unrecorded")
    write(folder, PROGRAM, counted=False)
    done = started(folder, "program.py", **environment(folder / "cache"))
    assert done.code == 0, done.err
    return done, folder


@pytest.mark.long
def test_cache_keys_and_settings_are_those_of_an_unrecorded_run(
    unrecorded: tuple[Done, Path], tmp_path: Path
) -> None:
    first, folder = unrecorded
    plain, recorded, again = folder / "cache", tmp_path / "recorded", tmp_path / "traces"
    second = run(folder, "-o", str(again), "program.py", **environment(recorded))
    assert second.code == 0, second.err
    assert settings_of(second) == settings_of(first)
    assert keys(recorded) == keys(plain)
    assert len(keys(plain)["fx graph"]) >= 5, "forward and backward of two sizes, and the function"
    assert len(keys(plain)["aot autograd"]) >= 3

    (recording,) = recordings(again)
    for cache, known in keys(plain).items():
        looked_up = {lookup.key for lookup in recording.all(CacheLookup) if lookup.cache == cache}
        assert looked_up == known, f"the recording has other keys of the {cache} cache"


@pytest.mark.long
def test_a_recorded_run_is_served_by_what_an_unrecorded_one_wrote(
    unrecorded: tuple[Done, Path], tmp_path: Path
) -> None:
    _, folder = unrecorded
    cache, traces = tmp_path / "cache", tmp_path / "traces"
    shutil.copytree(folder / "cache", cache)
    before = keys(cache)
    assert run(folder, "-o", str(traces), "program.py", **environment(cache)).code == 0
    assert keys(cache) == before
    (recording,) = recordings(traces)
    lookups = [lookup for lookup in recording.all(CacheLookup) if lookup.cache == "aot autograd"]
    assert lookups
    assert {one.verdict for one in lookups} == {"hit"}


def settings_of(done: Done) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(done.out.splitlines()[-1])
    assert [len(one) > 100 for one in found] == [True, True]
    return found
