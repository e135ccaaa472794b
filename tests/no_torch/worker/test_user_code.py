from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.control.user_error import UserError
from tcw.compiler.trace.records import Location
from tcw.workbench.worker.user_code import UserCode, read_user_code


def read(folder: Path, text: str) -> UserCode:
    file = folder / "model.py"
    file.write_text(text)
    return read_user_code(str(file))


def test_what_the_top_level_binds(tmp_path: Path) -> None:
    code = read(
        tmp_path,
        """
import a.b, c as d
from e import f, g as h
if x:
    model = 1
else:
    with y as z:
        (i, *j), k = 1
try:
    l = 1
except E:
    m: int = 1
for n in range(2):
    pass
if (o := 1): pass
def p(): hidden = 1
class Q: hidden = 1
if __name__ == "__main__":
    hidden = 1
else:
    r = 1
""",
    )
    assert code.bound == {*"adfhzijklmnoprQ", "model"}
    assert code.classes == {"Q": 17}
    assert not code.star
    assert not code.compiles


@pytest.mark.parametrize(
    ("text", "compiles"),
    [
        ("f = torch.compile(g)", True),
        ("@torch.compile\ndef f(): pass", True),
        ("net.compile()", True),
        ("p = re.compile('a')", False),
        ("compile('a', 'b', 'exec')", False),
    ],
)
def test_whether_it_compiles_itself(tmp_path: Path, text: str, compiles: bool) -> None:
    assert read(tmp_path, text).compiles is compiles


def test_columns_count_bytes(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, "x = 'é' + 1 2\n")
    place = caught.value.location
    assert place == Location(file=str(tmp_path / "model.py"), line=1, column=13, end_column=14), (
        place
    )


def test_an_encoding_cookie_is_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes("# -*- coding: latin-1 -*-\nmodel = 'é'\n".encode("latin-1"))
    assert "model" in read_user_code(str(file)).bound


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        read(tmp_path, "x = " + "(" * 5000 + ")" * 5000)
