"""Settings against graph breaks are those that torch itself names in its registry."""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch

from tcw.compiler.protocol.torch_settings import read_setting
from tcw.viewers.summary.profile.causes.remedies import SETTINGS

REGISTRY = Path(torch._dynamo.__file__).parent / "graph_break_registry.json"
NAMED = re.compile(r"torch\._dynamo\.config\.(\w+)")
ONE_VERSION = {"enable_trace_load_build_class"}
"""Settings that some supported torch versions lack."""
BY_ADVICE = frozenset({
    "Failed to trace builtin operator", "logging.Logger method not supported for non-export cases",
})  # fmt: skip
"""Types whose setting takes the called function, which our advice on the line names."""

NOT_TRIED = frozenset({"Strict mode banned op"})
"""Types whose hint names a setting not meant for users: a private list of operations."""


def entries() -> dict[str, str]:
    """Type of break -> torch's text about it."""
    registry = json.loads(REGISTRY.read_text())
    found: dict[str, str] = {}
    for one in (one for all in registry.values() for one in all):
        said = " ".join((*one["Hints"], one["Explanation"]))
        found[one["Gb_type"]] = f"{found.get(one['Gb_type'], '')} {said}"
    return found


def test_each_setting_that_torch_names_is_tried_or_said_not_to_be() -> None:
    named = {type for type, hints in entries().items() if NAMED.search(hints)}
    assert named
    assert named <= {*SETTINGS, *BY_ADVICE, *NOT_TRIED}


def test_settings_are_those_that_torch_names() -> None:
    hints = entries()
    for type, line in SETTINGS.items():
        if type not in hints:
            continue  # from another version of torch
        name = read_setting(line).name
        assert name in NAMED.findall(hints[type]), type
        assert hasattr(torch._dynamo.config, name) or name in ONE_VERSION, name


def test_most_types_are_those_of_the_installed_torch() -> None:
    assert len(set(SETTINGS) & set(entries())) >= len(SETTINGS) - 1
