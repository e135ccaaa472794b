"""Names of files."""

from __future__ import annotations

from tcw.viewers.file_names import FileNames


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
