"""What a function is called where several have one name."""

from __future__ import annotations

from tcw.compiler.trace.records import FrameStart, Location, Source, Text
from tcw.viewers.recording import Recording
from tcw.viewers.summary.function_names import FunctionNames

SOURCE = """class Norm(Module):
    def forward(self, x):
        return x


class Expert(Module):
    @checked
    def forward(self, x):
        return x
"""


def start(compile_id: str, line: int, name: str = "forward", **more: int) -> FrameStart:
    place = Location(file="/m.py", line=line, function=name)
    return FrameStart(
        compile_id=compile_id, attempt=0, function=name, location=place, call=1, **more
    )


def names(*starts: FrameStart, source: str = SOURCE) -> list[str]:
    records = [Text(hash="a", body=source), Source(file="/m.py", text="a"), *starts]
    function_names = FunctionNames(Recording(records))
    return [function_names.of(one.compile_id, one.function) for one in starts]


def test_a_shared_name_has_its_class() -> None:
    assert names(start("0/0", 2), start("1/0", 7), start("1/1", 7)) == [
        "Norm.forward",
        "Expert.forward",
        "Expert.forward",
    ]


def test_a_name_that_is_one_functions_is_kept() -> None:
    assert names(start("0/0", 2), start("0/1", 2), start("1/0", 4, resumes_at=4)) == ["forward"] * 3


def test_without_the_source_a_name_is_kept() -> None:
    assert names(start("0/0", 2), start("1/0", 7), source="\n" * 9) == ["forward", "forward"]
    assert names(start("0/0", 2), start("1/0", 3)) == ["Norm.forward", "forward"]
