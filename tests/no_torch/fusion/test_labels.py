"""Labels in words."""

from __future__ import annotations

import pytest

from tcw.compiler.fusion.build_nest import label
from tcw.compiler.loops.expressions import Const
from tcw.compiler.loops.graph import Map


@pytest.mark.parametrize(
    ("origins", "words"),
    [
        ("amax sub exp sum_1 div", "softmax"),
        ("add_3 var_mean add_4 rsqrt_1 sub_2 mul_4 mul_5 add_5", "add + layer norm"),
        ("pow_1 mean add rsqrt mul mul_1", "rms norm"),
        ("mul_2 erf mul_3 add_6 mul_4", "gelu"),
        ("add add_1", "add"),
        ("neg_1 exp add div mul", "silu + mul"),
        (
            "amax sub exp sum_1 div add var_mean add_1 rsqrt sub_1 mul mul_1 add_2",
            "softmax + add + layer norm",
        ),
        ("sin cos tan exp log sqrt", "sin + cos + tan + exp + 2 more"),
    ],
)
def test_label(origins: str, words: str) -> None:
    nodes = [Map(o, "float32", (1,), Const(0.0, "float32"), (o,)) for o in origins.split()]
    assert label(list(nodes)) == words
