"""JUnit XML: a test case a target, as CI servers read it (the schema of Apache Ant's task)."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from tcw.viewers.check.result import OUTCOME_WORDS, TargetResult
from tcw.viewers.plain import plain_lines


def junit(results: Sequence[TargetResult]) -> str:
    errors = sum(one.outcome in ("failed", "interrupted") for one in results)
    suite = ElementTree.Element(
        "testsuite",
        name="tcw check",
        tests=str(len(results)),
        failures=str(sum(one.fails for one in results) - errors),
        errors=str(errors),
        skipped="0",
        time=f"{sum(one.seconds for one in results):.3f}",
    )
    for one in results:
        suite.append(_case(one))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    body = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _case(result: TargetResult) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        name=_plain(result.name),
        classname=_plain(result.file),
        time=f"{result.seconds:.3f}",
    )
    words = [one.words for one in result.changes]
    if result.cause:
        words.insert(0, f"because {result.cause}")
    if result.fails:
        kind = "error" if result.outcome in ("failed", "interrupted") else "failure"
        found = ElementTree.SubElement(
            case,
            kind,
            type=result.outcome,
            message=_plain(result.first_words or OUTCOME_WORDS[result.outcome]),
        )
        found.text = "\n".join(map(_plain, words))
    elif words:
        ElementTree.SubElement(case, "system-out").text = "\n".join(map(_plain, words))
    return case


def _plain(text: str) -> str:
    """Without the control characters that XML cannot hold, even escaped."""
    return "\n".join(plain_lines(text))
