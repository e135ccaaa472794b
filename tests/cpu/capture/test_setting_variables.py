"""The environment variables that torch takes settings from, read from the text of its modules."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from tcw.compiler.capture.settings import setting_variables

KNOWN = {
    "torch._inductor.config.max_autotune": ("TORCHINDUCTOR_MAX_AUTOTUNE", "1", "True"),
    "torch._inductor.config.cpp.min_chunk_size": ("TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE", "64", "64"),
    "torch._functorch.config.enable_autograd_cache": ("TORCHINDUCTOR_AUTOGRAD_CACHE", "0", "False"),
}


def test_settings_and_their_variables() -> None:
    environ = {variable: value for variable, value, _ in KNOWN.values()}
    found = setting_variables({**environ, "PATH": "/bin", "CXX": "g++"})
    for setting, (variable, value, _) in KNOWN.items():
        assert found.get(setting) == f"{variable}={value}"
    assert setting_variables({}) == {}
    assert all("=" in one and "PATH" not in one for one in found.values())


@pytest.mark.long
def test_torch_takes_them_so() -> None:
    """In a process that has the variables, the settings are what the variables say."""
    program = "import torch._inductor.config, torch._functorch.config\n" + "\n".join(
        f"print({setting})" for setting in KNOWN
    )
    environ = {variable: value for variable, value, _ in KNOWN.values()}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [value for *_, value in KNOWN.values()]


def test_a_module_without_text_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = types.SimpleNamespace(__file__="/nowhere/config.py")
    monkeypatch.setitem(sys.modules, "torch._inductor.config", nowhere)
    found = setting_variables({"TORCHINDUCTOR_MAX_AUTOTUNE": "1"})
    assert not any(one.startswith("torch._inductor") for one in found)
