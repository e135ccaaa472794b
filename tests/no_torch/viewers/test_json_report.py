"""`--json`: the keys that other programs rely on, valid whatever happened."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.compiler.trace.records import AnyRecord, Numerics
from tcw.viewers import json_report
from tcw.viewers.json_text import json_text
from tcw.viewers.recording import Recording
from tests.block_trace import block_trace
from tests.conftest import Golden
from tests.no_torch import schemas, traces
from tests.no_torch.trace.strategies import records

KEYS = {
    "version": None,
    "status": None,
    "defaults_from": None,
    "error": None,
    "findings": {
        "kind",
        "cost",
        "title",
        "file",
        "line",
        "fix",
        "tried",
        "consequences",
    },
    "together": None,
    "graphs": {"id", "compile_id", "ops"},
    "breaks": {"file", "line", "gb", "type", "reason", "fix", "count"},
    "frames": {"compile_id", "guards"},
    "recompiles": {"compile_id", "call", "guard", "expected", "seen", "file", "line", "fix"},
    "kernels": {"id", "engine", "language", "name", "origins", "lines", "predicted"},
    "fusion": {"fused", "rejected"},
    "caches": {"cache", "hits", "misses", "bypasses", "missed"},
    "phases": {"name", "count", "seconds", "self_seconds", "beside_seconds"},
    "speed": {"eager_ms", "compiled_ms", "speedup", "noise", "compile_s"},
    "numerics": {"max_abs", "max_rel", "note"},
    "not_in_log": None,
    "engines": None,
    "comparison": None,
    "profiles": None,
    "modes": None,
    "trials": None,
}

VALIDATOR = jsonschema.Draft202012Validator(schemas.REPORT)


def strict(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def loaded(found: list[AnyRecord]) -> dict[str, Any]:
    text = json_text(json_report.report(Recording(found)))
    value: dict[str, Any] = json.loads(text, parse_constant=strict)
    VALIDATOR.validate(value)
    return value


def test_the_keys() -> None:
    value = loaded(block_trace())
    assert set(value) == set(KEYS)
    for key, inner in KEYS.items():
        if inner is not None:
            one = value[key][0] if isinstance(value[key], list) else value[key]
            assert set(one) == inner, key


def test_block(golden: Golden) -> None:
    golden("explain/block.json", json_text(json_report.report(Recording(block_trace()))))


@pytest.mark.parametrize(
    ("case", "status", "error"),
    [
        (traces.clean, "ok", None),
        (traces.failed, "failed", "RuntimeError"),
        (traces.timed_out, "timeout", "timeout"),
        (traces.until_capture, "ok", None),
        (traces.hostile, "failed", None),
        (list, "incomplete", "incomplete"),
    ],
)
def test_status(case: Callable[[], list[AnyRecord]], status: str, error: str | None) -> None:
    value = loaded(case())
    assert value["status"] == status
    if error is not None:
        assert value["error"]["type"] == error


def test_a_timeout_says_where_it_was() -> None:
    assert loaded(traces.timed_out())["error"]["doing"] == "build: building 12 kernels"


def test_breaks_are_distinct_by_site_and_code() -> None:
    again = [traces.graph_break(compile_id=f"{n}/0") for n in range(3)]
    other = traces.graph_break(gb="GB0059")
    value = loaded([*again, other])
    assert [(one["line"], one["gb"], one["count"]) for one in value["breaks"]] == [
        (7, "GB0170", 3),
        (7, "GB0059", 1),
    ]


def test_numbers_that_json_cannot_carry_are_null() -> None:
    value = loaded([Numerics(compared=1, max_abs=math.inf, max_rel=math.nan)])
    assert value["numerics"] == {"max_abs": None, "max_rel": None, "note": ""}


def test_not_measured_is_null() -> None:
    value = loaded(traces.until_capture())
    assert (value["speed"], value["numerics"]) == (None, None)


def test_nothing_at_all_is_a_report_as_well() -> None:
    text = json_text(json_report.failed_report("usage", "UsageError", "no \ud800 file"))
    value = json.loads(text)
    VALIDATOR.validate(value)
    assert value["error"]["message"] == "no ? file"


@given(st.lists(records(), max_size=12))
@settings(max_examples=100)
def test_any_trace_gives_a_valid_report(found: list[AnyRecord]) -> None:
    loaded(found)


def test_the_schema_demands_every_key() -> None:
    broken = msgspec.to_builtins(json_report.report(Recording(traces.clean())))
    del broken["breaks"]
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(broken)
