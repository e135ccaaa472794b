"""`tcw doctor`: what it finds here, and what it says where something is missing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from click.testing import CliRunner, Result

from tcw.compiler.trace.records import HookStatus
from tcw.workbench.cli import doctor
from tcw.workbench.cli.doctor import Check, checks
from tcw.workbench.worker.findings import Findings
from tests.cpu import versions

WHOLE = Findings(
    python="3.11.7",
    torch="2.13.0+cpu",
    triton="3.7.1",
    compiler="g++ 12.2.0",
    cpu="AMD EPYC",
    vector="AVX512",
    threads=4,
    gpu="NVIDIA H100 80GB HBM3, sm_90, 80 GiB",
    engine="C++ for avx512, 512 bits",
    hooks=(HookStatus(name="frames", available=True, offers="every frame"),),
)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(doctor.command, arguments, standalone_mode=False)
    assert result.exception is None
    return result


def found(findings: Findings, name: str) -> Check:
    return next(check for check in checks(findings, "") if check.name == name)


def changed(**values: Any) -> Findings:
    return msgspec.structs.replace(WHOLE, **values)


@pytest.fixture(scope="module")
def here() -> Findings:
    """This environment, asked through the worker."""
    return doctor.ask_worker()


def test_the_worker_says_what_torch_says(here: Findings) -> None:
    assert here.torch == torch.__version__
    assert here.vector == torch.backends.cpu.get_cpu_capability()
    assert bool(here.gpu) == torch.cuda.is_available()
    assert here.hooks == tuple(hook.check() for hook in versions.HOOKS)
    assert here.torch_fault == here.hooks_fault == ""


def test_here_nothing_needed_is_missing(here: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ask_worker", lambda: here)
    result = run()
    assert result.return_value == 0
    assert f"✓ torch         {torch.__version__}" in result.stdout
    assert "✓ guardian      removes what a killed recording leaves" in result.stdout
    result = run("--json")
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert report["version"] == 1
    names = [hook.name for hook in versions.HOOKS]
    assert [hook["name"] for hook in report["hooks"]] == names


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in ("torch", "triton"):
        (tmp_path / package).mkdir()
        fault = f"raise ModuleNotFoundError('No module named {package}', name='{package}')"
        (tmp_path / package / "__init__.py").write_text(fault)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = run()
    assert result.return_value == 1
    assert "✗ torch         torch is not installed in" in result.stdout
    assert "✓ C++ compiler" in result.stdout
    assert "→ pip install 'torch-compile-workbench[torch]'" in result.stdout
    assert "✗ hooks         not checked without torch" in result.stdout


def test_a_worker_that_dies_is_a_missing_torch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import os; os._exit(7)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = run("--json")
    assert result.return_value == 1
    first = json.loads(result.stdout)["checks"][0]
    assert first["name"] == "torch"
    assert "exited with code 7" in first["found"]


def test_a_machine_that_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert [check.state for check in checks(WHOLE, "")] == ["ok"] * 11
    assert all(check.fix == "" for check in checks(WHOLE, ""))


FAULTS = {
    "no torch": ("torch", {"torch": "", "torch_fault": "no torch"}, "missing", "pip install"),
    "old torch": ("torch", {"torch": "2.6.0"}, "limited", "2.11 to 2.15"),
    "new torch": ("torch", {"torch": "2.16.0a0"}, "limited", "2.11 to 2.15"),
    "no compiler": ("C++ compiler", {"compiler": ""}, "missing", "apt install g++"),
    "no headers": (
        "C++ compiler",
        {"compiler_fault": "trial.cpp:1:10: fatal error: Python.h: No such file"},
        "missing",
        "apt install python3-dev",
    ),
    "no hook": (
        "hooks",
        {
            "hooks": (
                HookStatus(
                    name="x", available=False, offers="", tried_on=("2.13.0/3.11", "2.13.0/3.14")
                ),
            )
        },
        "missing",
        "tested on torch 2.13.0",
    ),
    "no triton": ("triton", {"triton": ""}, "missing", "pip install"),
    "another triton": ("triton", {"triton": "3.5.0"}, "limited", "triton==3.7.*"),
    "no engine": ("tcw engine", {"engine_fault": "no C++ compiler"}, "limited", "run on ATen"),
    "no GPU": ("GPU", {"gpu": ""}, "missing", "--device cuda --arch sm_90"),
    "no vectors": ("vector ISA", {"vector": "DEFAULT"}, "limited", "without vector"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_a_remedy(fault: str) -> None:
    name, values, state, fix = FAULTS[fault]
    check = found(changed(**values), name)
    assert check.state == state
    assert fix in check.fix


def test_a_hook_that_torch_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = HookStatus(
        name="fusion", available=False, offers="every pair", reason="not available in torch 9"
    )
    monkeypatch.setattr(doctor, "ask_worker", lambda: changed(hooks=(*WHOLE.hooks, lacking)))
    result = run()
    assert "✗ hooks         1 of 2" in result.stdout
    assert "✗ fusion: not available in torch 9; lost: every pair" in result.stdout
    assert result.return_value == 0


def test_an_open_cache_folder_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "tcw"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    check = found(WHOLE, "cache folder")
    assert check.state == "missing"
    assert check.fix == f"run: chmod 700 {folder}"


def test_a_guardian_that_does_not_work_is_said() -> None:
    (check,) = (one for one in checks(WHOLE, "it does not start") if one.name == "guardian")
    assert (check.state, check.found) == ("limited", "it does not start")
    assert "tcw-recording-*" in check.fix


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    for free, state in ((1 << 20, "missing"), (1 << 28, "limited"), (1 << 40, "ok")):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, f=free: usage._replace(free=f))
        assert found(WHOLE, "build folder").state == state


def test_a_build_folder_that_is_not_ours_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/proc/nowhere/inside")
    check = found(WHOLE, "build folder")
    assert check.state == "missing"
    assert check.found == "/proc/nowhere/inside is not writable"


def test_what_the_machine_says_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ask_worker", lambda: changed(compiler="g++ \x1b[31mred\x07"))
    assert "\x1b" not in run().stdout
    assert "g++ ␛[31mred␇" in run().stdout


def test_the_trial_build_tells_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tcw.workbench.worker.toolchain import compiler_fault, compiler_version

    assert compiler_fault() == ""
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'trial.cpp:2: fatal error: omp.h: no' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    assert "omp.h" in compiler_fault()
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    assert compiler_version() == ""
    assert "there is no" in compiler_fault()
    assert os.listdir(tmp_path) == ["c++"]
