"""Settings of torch as lines of code."""

from __future__ import annotations

import pytest

from tcw.compiler.protocol.torch_settings import SettingError, TorchSetting, read_setting


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("capture_scalar_outputs = True", "torch._dynamo.config.capture_scalar_outputs = True"),
        ("capture_scalar_outputs=True", "torch._dynamo.config.capture_scalar_outputs = True"),
        (
            "torch._dynamo.config.reorderable_logging_functions.add(print)",
            "torch._dynamo.config.reorderable_logging_functions.add(print)",
        ),
        (
            "ignore_logging_functions.add(log.info)",
            "torch._dynamo.config.ignore_logging_functions.add(log.info)",
        ),
        ("torch._inductor.config.cpp.threads = 2", "torch._inductor.config.cpp.threads = 2"),
    ],
)
def test_lines_are_read_and_written(line: str, code: str) -> None:
    setting = read_setting(line)
    assert setting.code == code
    assert read_setting(setting.code) == setting


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "x = f()",
        "torch.set_num_threads(1)",
        "torch.backends.cudnn.enabled = False",
        "a.add(f())",
        "a.add(f, g)",
        "a.remove(f)",
        "a = 1; b = 2",
        "import os",
        "torch._inductor.config.f().x = 1",
        "torch._inductor.config.cpp.cxx[0] = 'cxx'",
        "torch._inductor.config.a[f()].b = 1",
        "a.add(f().g)",
        "torch._dynamo.config.a.add((lambda: 1).b)",
    ],
)
def test_whatever_else_is_refused(line: str) -> None:
    with pytest.raises(SettingError, match="expected a line such as"):
        read_setting(line)


def test_values_are_constants() -> None:
    assert read_setting("a = [1, 'b']") == TorchSetting(
        module="torch._dynamo.config", name="a", value=[1, "b"]
    )
