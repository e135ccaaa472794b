"""SARIF 2.1.0 (OASIS), which code scanning reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from tcw.viewers.check.annotations import RULES, Annotation, annotated
from tcw.viewers.check.result import TargetResult
from tcw.viewers.plain import plain_lines

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
HELP = "https://meta-pytorch.github.io/compile-graph-break-site/gb/{}.html"
"""torch's page on a graph break, by its id in lower case."""


def sarif(
    results: Sequence[TargetResult], root: str, version: str, below: str = ""
) -> dict[str, Any]:
    """The log, with one run. `version`: tcw's; `root`, `below`: as of `annotated`."""
    found = annotated(results, root, below)
    rules = list(dict.fromkeys(annotation.rule for annotation in found))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "tcw check",
                        "version": version,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(annotation, rules) for annotation in found],
            }
        ],
    }


def _rule(id: str) -> dict[str, Any]:
    words = RULES.get(id, RULES["break"])
    rule: dict[str, Any] = {"id": id, "shortDescription": {"text": words}}
    if id not in RULES:
        rule["helpUri"] = HELP.format(id.lower())
    return rule


def _result(annotation: Annotation, rules: list[str]) -> dict[str, Any]:
    return {
        "ruleId": annotation.rule,
        "ruleIndex": rules.index(annotation.rule),
        "level": annotation.level,
        "message": {"text": "\n".join(plain_lines(f"{annotation.target}: {annotation.message}"))},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(annotation.file),
                    "region": {"startLine": annotation.line},
                }
            }
        ],
        "partialFingerprints": {"tcwFact/v1": annotation.identity},
    }


def _artifact(file: str) -> dict[str, str]:
    uri = quote(file.encode(errors="replace"))
    return {"uri": f"file://{uri}"} if file.startswith("/") else {
        "uri": uri, "uriBaseId": "%SRCROOT%",
    }  # fmt: skip
