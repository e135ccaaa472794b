"""The versions of torch that hooks were tried on: one table, in the code and in the documents."""

from __future__ import annotations

from tcw.compiler.control.tried_on import TRIED_ON
from tests.cpu import versions


def test_each_hook_has_a_test_file() -> None:
    for name, file in versions.tests().items():
        assert (versions.ROOT / "tests" / "cpu" / file).is_file(), name


def test_the_page_and_the_module_are_of_one_run() -> None:
    assert set(TRIED_ON) == set(versions.tests())
    assert versions.MODULE.read_text() == versions.module_text(TRIED_ON)
    assert versions.table(TRIED_ON) in versions.PAGE.read_text()


def test_a_patch_release_takes_the_place_of_an_older_one() -> None:
    name, file = next(iter(versions.tests().items()))
    before = {name: ("2.11.0", "2.12.0", "2.13.0")}
    assert versions.noted(before, file, "2.12.1", passed=True)[name] == (
        "2.11.0",
        "2.12.1",
        "2.13.0",
    )
    assert versions.noted(before, file, "2.12.1", passed=False)[name] == ("2.11.0", "2.13.0")
    assert versions.noted(before, "another", "2.12.1", passed=True)[name] == before[name]
