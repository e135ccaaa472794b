from __future__ import annotations

import pytest

from tcw.viewers.file_names import FileNames
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.place import Place
from tcw.viewers.text.explain import findings_lines
from tcw.viewers.text.lines import to_text

FILE = "/usr/lib/python3.11/site-packages/transformers/models/switch_transformers/modeling.py"
SHORT = FILE.partition("site-packages/")[2]


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (120, f"Dynamic shape operator (GB0036)  {SHORT}:9"),
        (80, "Dynamic shape operator (GB0036)  …/modeling.py:9"),
        (50, "Dynamic shape oper›  …/modeling.py:9"),
    ],
)
def test_a_long_title_goes_before_the_folders_of_its_place(width: int, row: str) -> None:
    finding = Finding("break", "+2 graphs", "Dynamic shape operator (GB0036)", Place(FILE, 9))
    text = to_text(findings_lines([finding, finding], FileNames(), width, 2), width)
    assert text.splitlines()[-1] == f"✗  +2 graphs  {row}"
