"""Identifiers of the generated C++."""

from __future__ import annotations

from tcw.compiler.codegen.cpp.nests.code import RESERVED
from tcw.compiler.codegen.nests.names import Names, anonymous


def test_a_family_does_not_meet_other_names() -> None:
    names = Names(RESERVED)
    names.exactly("sum_part_1")
    stem = names.family("sum_part", ["0", "1"])
    again = names.family("sum_part", ["0", "1"])
    made = [f"{one}_{ending}" for one in (stem, again) for ending in ("0", "1")]
    assert len({"sum_part_1", *made}) == 5
    assert names.exactly(made[0]) != made[0]


def test_an_attribute_is_not_a_variable_of_its_name() -> None:
    texts = [f"{name} = tl.where(mask, {name}, 0)" for name in ("where", "add")]
    assert anonymous(texts[0], ["where"]) == anonymous(texts[1], ["add"])
    assert "tl.where(mask, v0, 0)" in anonymous(texts[0], ["where"])
