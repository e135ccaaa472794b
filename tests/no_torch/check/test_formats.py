"""Each format of `tcw check`, read by what reads it: golden texts, parsers, a Markdown renderer."""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from xml.etree import ElementTree

import junitparser
import msgspec
import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from tcw.viewers.check.annotations import MOST, annotated, github
from tcw.viewers.check.junit import junit
from tcw.viewers.check.markdown import MARKER, markdown
from tcw.viewers.check.result import TargetResult
from tcw.viewers.check.sarif import sarif
from tcw.viewers.check.text import check_lines
from tcw.viewers.json_check import check_report
from tcw.viewers.markdown.comment import MOST_CHARACTERS
from tcw.viewers.summary.budget import FactChange
from tests.conftest import Golden
from tests.no_torch import schemas
from tests.no_torch.check.results import CAUSE, ROOT, every_outcome, hostile
from tests.no_torch.hostile import EVIL


@pytest.mark.parametrize("format", ["text", "markdown", "github", "junit", "sarif"])
def test_golden(format: str, golden: Golden) -> None:
    results = every_outcome()
    text = {
        "text": lambda: "\n".join(line.text for line in check_lines(results)) + "\n",
        "markdown": lambda: markdown(results),
        "github": lambda: github(results, ROOT),
        "junit": lambda: junit(results),
        "sarif": lambda: json.dumps(sarif(results, ROOT, "1.0"), indent=1) + "\n",
    }[format]()
    golden(f"check/{format}.txt", text)


def test_json_is_of_its_schema() -> None:
    value = json.loads(msgspec.json.encode(check_report(every_outcome())))
    Draft202012Validator(schemas.CHECK).validate(value)
    assert value["failed"] is True
    assert [one["outcome"] for one in value["targets"]] == [
        "worse", "ok", "better", "new", "failed", "interrupted",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", *EVIL])
def test_sarif_is_valid(text: str) -> None:
    """Against models generated from the schema of OASIS, which allow no other keys."""
    results = hostile(text) if text else every_outcome()
    log = Sarif.model_validate(json.loads(json.dumps(sarif(results, ROOT, "1.0"))))
    assert log.runs[0].results is not None
    assert len(log.runs[0].results) == len(annotated(results, ROOT))


def test_sarif_names_rules_help_and_fingerprints() -> None:
    run = sarif(every_outcome(), ROOT, "1.0")["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    first = run["results"][0]
    assert rules[first["ruleIndex"]]["id"] == first["ruleId"] == "GB0059"
    assert rules[first["ruleIndex"]]["helpUri"].endswith("/gb0059.html")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "block.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 25
    prints = [one["partialFingerprints"]["tcwFact/v1"] for one in run["results"]]
    assert len(set(prints)) == len(prints)


def test_a_fingerprint_is_that_of_the_fact_and_not_of_its_line() -> None:
    def printed(line: int, name: str) -> str:
        change = FactChange("break", name, None, 1, "worse", file=f"{ROOT}/a.py", line=line)
        return annotated([TargetResult("a", "a.py", "2.13", changes=(change,))])[0].identity

    assert printed(3, "GB0059 in f: print()") == printed(9, "GB0059 in f: print()")
    assert printed(3, "GB0059 in f: print()") != printed(3, "GB0059 in g: print()")


def test_junit_is_read_by_a_parser() -> None:
    suite = next(iter(junitparser.JUnitXml.fromstring(junit(every_outcome()).encode())))
    assert (suite.tests, suite.failures, suite.errors) == (6, 2, 2)
    case = next(iter(suite))
    assert case.name == "block"
    assert case.result[0].message == "block.py:25  a new graph break: print()"
    assert f"because {CAUSE}" in case.result[0].text


@pytest.mark.parametrize("text", EVIL)
def test_hostile_text_is_data_everywhere(text: str) -> None:
    results = hostile(text)
    ElementTree.fromstring(junit(results))
    for command in commands(github(results, ROOT)):
        assert command[0] in ("error", "warning", "notice")
        assert set(command[1]) == {"file", "line", "title"}
    page = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown(results))
    assert "<script" not in page
    assert "<a " not in page
    assert "<img" not in page
    for control in "\x1b\x07\x9b\u202e\u2066\x00":
        for made in (markdown(results), github(results, ROOT), junit(results)):
            assert control not in made


COMMAND = re.compile(r"::(\w+) ([^:]*)::(.*)")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Workflow commands as the runner of GitHub Actions reads them: a line each."""
    found = []
    for line in text.splitlines():
        if match := COMMAND.fullmatch(line):
            given = dict(part.split("=", 1) for part in match[2].split(","))
            found.append((match[1], {k: unescaped(v) for k, v in given.items()}, match[3]))
    return found


def unescaped(text: str) -> str:
    return urllib.parse.unquote(text)


def test_github_reads_file_line_and_message() -> None:
    first = commands(github(every_outcome(), ROOT))[0]
    assert first[0] == "error"
    assert first[1] == {"file": "block.py", "line": "25", "title": "tcw check: block"}
    assert unescaped(first[2]).startswith("a new graph break: GB0059 in forward: print(x | y)\n")


def test_paths_are_those_of_the_repository() -> None:
    """Also where the project is a folder in it."""
    top = os.path.dirname(ROOT)
    told = commands(github(every_outcome(), top, "project"))
    files = {one[1]["file"] for one in told}
    assert files >= {"project/block.py", "project/models/gpt.py", "project/models/parts.py"}
    assert all(file.startswith("project/") for file in files)
    log = sarif(every_outcome(), top, "0.1", "project")
    uris = json.dumps(log)
    assert '"uri": "project/block.py"' in uris
    assert '"uri": "block.py"' not in uris


def test_annotations_beyond_what_github_shows_are_counted() -> None:
    changes = tuple(FactChange("break", f"GB{n:04}", None, 1, "worse") for n in range(MOST + 3))
    text = github([TargetResult("a", "a.py", "2.13", changes=changes)], ROOT)
    assert len(commands(text)) == MOST
    assert text.splitlines()[-1].endswith("3 annotations more in the log")


def test_markdown_begins_with_its_marker_and_fits_a_comment() -> None:
    assert markdown(every_outcome()).startswith(MARKER + "\n")
    many = [
        TargetResult(
            f"t{n}",
            "a.py",
            "2.13",
            changes=tuple(FactChange("break", "x" * 300, None, 1, "worse") for _ in range(9)),
        )
        for n in range(60)
    ]
    text = markdown(many)
    assert len(text) <= MOST_CHARACTERS + 1000
    assert text.count("<details>") == text.count("</details>")
    shown = text.count("<details>")
    assert f"Left out, to stay within a comment's size: t{shown}: worse than accepted; " in text


def test_markdown_is_rendered_as_meant() -> None:
    page = (
        MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown(every_outcome()))
    )
    assert "<td><code>block.py:25 is new: print(x | y)</code></td>" in page
    assert page.count("<details>") == page.count("</details>")
