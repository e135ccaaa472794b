"""The pytest plugin: what a test may compile to, and fixtures to look at what it did.

    @pytest.mark.tcw(graphs=1, breaks=0, recompiles=0, max_kernels=4, fused=["softmax + add"])
    def test_model():
        torch.compile(model)(x)

    def test_one_kernel(tcw_recording):
        torch.compile(model)(x)
        assert tcw_recording.fused("softmax", "add")

Nothing of tcw is imported before a test uses one of the two.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tcw.workbench.library import Recorded

NUMBERS = {
    "graphs": "graphs",
    "breaks": "graph breaks",
    "recompiles": "recompiles",
    "guards": "guards",
    "kernels": "kernels",
    "loop_nests": "loop nests",
    "bytes_moved": "bytes moved",
    "memory_peak": "memory peak",
}
"""Keyword of the marker -> the fact of docs/check.md. Each also with `max_`."""

_SHOWN = pytest.StashKey["Recorded"]()
_RECORDING = pytest.StashKey[ExitStack]()
"""Ends the recording when it is closed."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "tcw(graphs=N, breaks=N, recompiles=N, max_kernels=N, fused=['softmax + add'], …): "
        "what the test may compile to (tcw, docs/check.md)",
    )


@pytest.fixture
def tcw_recording(request: pytest.FixtureRequest) -> Iterator[Recorded]:
    """What the test compiles: `.graphs`, `.breaks`, `.recompiles`, `.kernels`, `.findings`,
    `.fused("softmax", "add")`."""
    from tcw.workbench.library import record

    with ExitStack() as recording:
        recorded = recording.enter_context(record(file=str(request.path)))
        request.node.stash[_SHOWN] = recorded
        request.node.stash[_RECORDING] = recording
        yield recorded


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A marked test is recorded as if it named the fixture."""
    for item in items:
        if not isinstance(item, pytest.Function) or not item.get_closest_marker("tcw"):
            continue
        if "tcw_recording" not in item.fixturenames:
            item.fixturenames.insert(0, "tcw_recording")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    marker = item.get_closest_marker("tcw")
    if marker is None:
        return
    recorded = item.stash.get(_SHOWN, None)
    if recorded is None:
        pytest.fail("the tcw marker needs a test function", pytrace=False)
    if marker.args:
        pytest.fail("the tcw marker takes keywords: graphs=1, breaks=0, …", pytrace=False)
    wrong = list(_wrong(recorded, marker.kwargs))
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of `tcw explain`, below the failure of a test that was recorded."""
    report = yield
    recorded = item.stash.get(_SHOWN, None)
    if report.when == "call" and report.failed and recorded is not None:
        item.stash[_RECORDING].close()  # or the report would say that the recording goes on
        report.sections.insert(0, ("tcw", recorded.text()))
    return report


def _wrong(recorded: Recorded, wanted: Mapping[str, Any]) -> Iterator[str]:
    """The differences from the marker, in words."""
    for key, value in wanted.items():
        if key == "fused":
            groups = [value] if isinstance(value, str) else list(value)
            for group in groups:
                if not recorded.fused(*(name.strip() for name in group.split("+"))):
                    yield f"not in one kernel: {group}"
            continue
        most = key.startswith("max_")
        name = NUMBERS.get(key.removeprefix("max_"))
        if name is None:
            known = ", ".join([*NUMBERS, "fused"])
            yield f"the tcw marker has no {key!r}: {known}, or max_ before a number"
            continue
        number = recorded.number(name)
        if number is None:
            yield f"{name}: not known, expected {'at most ' if most else ''}{value}"
        elif (number > value) if most else (number != value):
            yield f"{name}: {number}, expected {'at most ' if most else ''}{value}"
