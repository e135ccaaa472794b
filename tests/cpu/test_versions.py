"""The torch and Python that hooks were tried on: one table, in the code and in the documents."""

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
    before = {name: ("2.12.0/3.12", "2.12.0/3.14", "2.13.0/3.9")}
    passed = versions.noted(before, file, "2.12.1/3.12", passed=True)[name]
    assert passed == ("2.12.0/3.14", "2.12.1/3.12", "2.13.0/3.9")
    failed = versions.noted(before, file, "2.12.1/3.12", passed=False)[name]
    assert failed == ("2.12.0/3.14", "2.13.0/3.9")
    assert versions.noted(before, "another", "2.12.1/3.12", passed=True)[name] == before[name]
    new = versions.noted(before, file, "2.13.0/3.14", passed=True)[name]
    assert new == (*before[name], "2.13.0/3.14")
