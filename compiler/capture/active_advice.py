"""Advice that asks for what is set already is none."""

from __future__ import annotations

import importlib

from tcw.compiler.protocol.torch_settings import SettingError, TorchSetting, read_setting
from tcw.compiler.trace.records import Advice


def without_active(advice: tuple[Advice, ...]) -> tuple[Advice, ...]:
    """The advice less what torch has been told already: a setting, `dynamic=True`."""
    return tuple(item for item in advice if not _is_active(item))


def _is_active(advice: Advice) -> bool:
    if "--dynamic" in advice.options:
        return is_dynamic()
    try:
        settings = [read_setting(line) for line in advice.code.splitlines()]
    except SettingError:
        return False
    return bool(settings) and all(map(_is_set, settings))


def is_dynamic() -> bool:
    """Whether the running compile has dynamic=True, which torch turns into this setting."""
    from torch._dynamo import config

    return getattr(config, "assume_static_by_default", True) is False


def _is_set(setting: TorchSetting) -> bool:
    value: object = importlib.import_module(setting.module)
    for name in setting.name.split("."):
        value = getattr(value, name, None)
    if not setting.adds:
        return type(value) is type(setting.value) and value == setting.value
    names = {getattr(one, "__name__", "") for one in value} if isinstance(value, set) else set()
    return setting.adds.rpartition(".")[2] in names
