"""The contents of `docs/compiler.md`, regenerated: the stages of its models, and its blocks.

A block of the page follows a comment that names it:

    <!-- file: softmax.py -->     source, as the reader would write it: it is run unchanged
    <!-- made: value-graph -->    output of our compiler: written by the test
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import torch

import tcw.compiler.engine.compile as stages
import tcw.compiler.engine.targets as targets
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.fusion.fuse import Fusion
from tcw.compiler.loops.graph import Graph
from tcw.compiler.loops.printer import graph_text, program_text
from tcw.compiler.memory.plan import Plan
from tcw.compiler.protocol.decision_records import decided_record
from tcw.compiler.runtime.artifact import Artifact
from tcw.viewers.summary import summarise
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.sections import SectionView, section
from tests.cpu.recorded import Recorded, record

BLOCK = re.compile(
    r"<!-- (?P<kind>file|made): (?P<name>[\w.-]+) -->\n"
    r"```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

ISA = "avx512"
"""The page's instruction set, on any machine: the text is generated, not built."""

WIDTH = 190


def blocks(page: str, kind: str) -> dict[str, str]:
    """The page's blocks of a kind, by name."""
    return {m["name"]: m["text"] for m in BLOCK.finditer(page) if m["kind"] == kind}


def with_blocks(page: str, made: Mapping[str, str]) -> str:
    """The page with new texts for the blocks of `made`."""

    def renewed(match: re.Match[str]) -> str:
        if match["kind"] == "file" or match["name"] not in made:
            return match[0]
        text = "".join(f"{line.rstrip()}\n" for line in made[match["name"]].strip("\n").split("\n"))
        return f"<!-- made: {match['name']} -->\n```{match['language']}\n{text}```"

    return BLOCK.sub(renewed, page)


@dataclass
class Walk:
    """The products of every stage for one model, graph by graph."""

    folder: Path
    captured: list[str] = field(default_factory=list)
    """TorchDynamo's graphs, as `print_readable` writes them."""
    aten: list[str] = field(default_factory=list)
    values: list[Graph] = field(default_factory=list)
    fusions: list[Fusion] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    recording: Recorded | None = None

    def value_graph(self) -> str:
        return graph_text(self.values[0])

    def program(self, number: int = 0) -> str:
        return program_text(self.fusions[number].program)

    def shown(self, name: str) -> str:
        """A section of `tcw explain --show NAME`."""
        assert self.recording is not None
        recording = next(iter(self.recording.engines.values()), self.recording)
        summary = summarise(recording)
        detail = "all" if name == "decisions" else ""
        view = SectionView(recording, summary, WIDTH, detail)
        return to_text(section(name)(view), WIDTH)

    def code(self, first: str, last: str = "") -> str:
        """The unit from the line that starts with `first` up to the one that starts with `last`."""
        lines = self.artifacts[0].unit.split("\n")
        begin = next(i for i, line in enumerate(lines) if line.startswith(first))
        ends = (i for i in range(begin, len(lines)) if last and lines[i].startswith(last))
        return "\n".join(lines[begin : next(ends, len(lines))])

    def definitions(self, starts: Sequence[str]) -> str:
        """The definitions of the prelude that start with these words."""
        chosen: list[str] = []
        taking = False
        for line in self.artifacts[0].unit.split("\n"):
            if line != "}" and not line.startswith(" "):
                taking = line.startswith(tuple(starts))
            if taking:
                chosen.append(line)
        return "\n".join(chosen)


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def walk(file: Path, overrides: Mapping[str, str] | None = None, *, backward: bool = False) -> Walk:
    """Compile `model(*example_inputs)` of a file up to the C++ text, which is not built.

    `backward`: with gradients for its inputs, forward and backward.
    """
    found = Walk(file.parent)
    module = load(file)
    inputs = [x.clone().requires_grad_(backward) for x in module.example_inputs]

    def captured(graph: Any, example_inputs: Any) -> Any:
        found.captured.append(_readable(graph, file.parent))
        return backend(graph, example_inputs)

    with _watched(found), record([]) as recorded:
        found.recording = recorded
        recorder = recorded.recorder
        recorder.settings = msgspec.structs.replace(recorder.settings, until="codegen")
        gate = Gate(overrides, watch=lambda one: recorder.emit(decided_record(one)))
        with listening(recorder, gate):
            answer = torch.compile(module.model, backend=captured)(*inputs)
            if backward:
                answer.backward(torch.ones_like(answer))
    return found


@contextmanager
def _watched(found: Walk) -> Iterator[None]:
    """Keep the products of the stages, for the page's instruction set."""
    kept = {
        "lower": found.values,
        "fuse": found.fusions,
        "plan": found.plans,
        "assemble": found.artifacts,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCW_STRICT", "1")
        patch.setenv("TCW_ISA", ISA)
        patch.setattr(stages, "compiled_graph", lambda _key, _store, make, *_, **__: make())
        for name, products in kept.items():
            place = targets if name == "assemble" else stages
            original = getattr(place, name)

            def watched(
                *args: Any, name: str = name, original: Any = original, products: Any = products
            ) -> Any:
                if name == "lower":
                    found.aten.append(_readable(args[0], found.folder))
                products.append(original(*args))
                return products[-1]

            patch.setattr(place, name, watched)
        yield


def _readable(graph: Any, folder: Path) -> str:
    text: str = graph.print_readable(print_output=False, include_stride=True)
    return text.replace(f"{folder}/", "")
