"""Names of files, and code cut to a width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from viewers.places import FileNames, cut, keep_end


def test_short_names() -> None:
    names = FileNames("/home/ada/models")
    assert names.short("/home/ada/models/block.py") == "block.py"
    assert names.short("/home/ada/models/nn/norm.py") == "nn/norm.py"
    assert names.short("/opt/v/lib/python3.11/site-packages/torch/nn/x.py") == "torch/nn/x.py"
    assert names.short("/usr/lib/python3.11/json/decoder.py") == "json/decoder.py"
    assert names.short("/srv/shared/code/other/lib.py") == "…/other/lib.py"
    assert names.short("<frozen runpy>") == "<frozen runpy>"
    assert names.place("/home/ada/models/block.py", 24) == "block.py:24"


def test_a_virtual_environment_beside_the_model() -> None:
    names = FileNames("/home/ada")
    file = "/home/ada/.venv/lib/python3.12/site-packages/transformers/models/bert.py"
    assert names.short(file) == "transformers/models/bert.py"


@given(st.text(max_size=40), st.integers(0, 30))
def test_cuts_fit_and_show_that_they_cut(text: str, width: int) -> None:
    for done, mark in ((cut(text, width), "›"), (keep_end(text, width), "…")):
        assert cell_len(done) <= width
        assert done == text or mark in done or not width


def test_cuts() -> None:
    assert cut("scores = q @ k", 9) == "scores =›"
    assert keep_end("layers.0.ln1.weight", 11) == "…ln1.weight"
