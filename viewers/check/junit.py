"""JUnit XML: a test case a target, as CI servers read it (the schema of Apache Ant's task)."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from tcw.viewers.check.result import OUTCOME_WORDS, TargetResult
from tcw.viewers.plain import plain_lines


def junit(results: Sequence[TargetResult]) -> str:
    errors = sum(result.outcome in ("failed", "interrupted") for result in results)
    suite = ElementTree.Element(
        "testsuite",
        name="tcw check",
        tests=str(len(results)),
        failures=str(sum(result.fails for result in results) - errors),
        errors=str(errors),
        skipped="0",
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        suite.append(_case(result))
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
    words = [change.words for change in result.changes]
    if result.cause:
        words.insert(0, f"because {result.cause}")
    if result.fails:
        kind = "error" if result.outcome in ("failed", "interrupted") else "failure"
        element = ElementTree.SubElement(
            case,
            kind,
            type=result.outcome,
            message=_plain(result.first_words or OUTCOME_WORDS[result.outcome]),
        )
        element.text = "\n".join(map(_plain, words))
    elif words:
        ElementTree.SubElement(case, "system-out").text = "\n".join(map(_plain, words))
    return case


def _plain(text: str) -> str:
    """Without the control characters that XML cannot hold, even escaped."""
    return "\n".join(plain_lines(text))
