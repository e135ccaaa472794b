"""Programs that recompile or break, each with the advice on it followed."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch._dynamo import config
from torch._dynamo.testing import CompileCounter

from tcw.compiler.capture import HOOKS
from tcw.compiler.trace.records import SCHEMA_VERSION, Advice, End, Settings, Start
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import break_sites
from tcw.viewers.summary.findings import Finding, findings_of
from tcw.viewers.summary.recompiles import recompile_causes
from tcw.workbench.fixes.candidates import NotTriable, applied
from tcw.workbench.worker.edited import edited_texts
from tests.cpu.recorded import record


@dataclass
class Program:
    """A script in a file of its own, and what its run showed."""

    file: Path
    findings: tuple[Finding, ...]
    recording: Recording
    compiles: int

    def with_advice(self, finding: Finding, advice: Advice) -> int | None:
        """The number of graphs that torch compiles if it is followed; None if it cannot be, -1 if
        the program fails then."""
        settings = Settings(file=str(self.file))
        try:
            changed = applied(advice, finding, self.recording, settings)
        except NotTriable:
            return None
        text = edited_texts(changed).get(str(self.file), self.file.read_text())
        saved = config.save_config()
        try:
            for line in changed.torch_settings:
                exec(line, {"torch": torch, "print": print})
            return _run(self.file, text, fails=True)
        except Exception:
            return -1
        finally:
            config.load_config(saved)

    def fixes(self, finding: Finding) -> list[int | None]:
        return [self.with_advice(finding, advice) for advice in finding.fixes]


def program(folder: Path, text: str) -> Program:
    """Run a script that compiles something, recorded."""
    file = folder / "program.py"
    file.write_text(text)
    with record(HOOKS, file=str(file)) as recorded:
        recorded.recorder.user_root = str(folder)
        recorded.recorder.emit(
            Start(
                schema_version=SCHEMA_VERSION, tool_version="", settings=Settings(file=str(file)),
                python="", platform="", pid=1, time=0.0,
            )
        )  # fmt: skip
        compiles = _run(file, text)
        recorded.recorder.emit(End(status="ok", seconds=0.0))
        found = findings_of(recorded, break_sites(recorded), recompile_causes(recorded))
    return Program(file, found, recorded, compiles)


def _run(file: Path, text: str, fails: bool = False) -> int:
    """The number of graphs; up to an error of torch's, unless that is raised as well."""
    torch._dynamo.reset()
    counter = CompileCounter()
    module = types.ModuleType("program")
    module.__file__ = str(file)
    code = compile(text, str(file), "exec")
    saved = config.save_config()
    try:
        sys.modules["program"] = module
        with _counting(counter):
            exec(code, vars(module))
    except Exception as error:
        if fails or not _of_torch(error):
            raise
    finally:
        sys.modules.pop("program", None)
        config.load_config(saved)
        torch._dynamo.reset()
    return int(counter.frame_count)


def _of_torch(error: BaseException) -> bool:
    return type(error).__module__.startswith("torch.")


@contextmanager
def _counting(counter: CompileCounter) -> Iterator[None]:
    """Everything that is compiled inside goes to the counter."""
    original = torch.compile

    def compiled(model: Any = None, **options: Any) -> Any:
        return original(model, **{**options, "backend": counter})

    with mock.patch.object(torch, "compile", compiled):
        yield
