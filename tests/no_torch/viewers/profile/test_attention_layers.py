"""Attentions of many layers that lost to one mask are one finding, however they were grouped."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace.records import EagerOperation, Region
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import profiles_of
from tests.no_torch.profiles import bert_on_a_gpu, masked_attention


def test_one_finding_for_all_layers() -> None:
    records = bert_on_a_gpu()
    attentions = {
        one.id for one in records if isinstance(one, EagerOperation) and "scaled" in one.operation
    }
    regions = [
        one for one in records if isinstance(one, Region) and attentions & set(one.operations)
    ]
    assert len(regions) > 1
    apart = structs.replace(regions[0], label="another")
    (whole,) = profiles_of(Recording(records))
    (split,) = profiles_of(Recording([apart if one is regions[0] else one for one in records]))
    assert len(split.rows) == len(whole.rows) + 1
    one, other = (
        [cause for cause in found.causes if cause.kind == "attention"] for found in (whole, split)
    )
    assert len(one) == len(other) == 1
    assert other[0].seconds == pytest.approx(one[0].seconds)
    assert other[0].title == one[0].title


def test_a_mask_made_by_several_kernels_is_one_note() -> None:
    records = masked_attention()
    (made,) = (one for one in records if isinstance(one, Region) and not one.operations)
    half = structs.replace(made, difference=made.difference / 2)
    others = [half if one is made else one for one in records]
    others.insert(others.index(half), structs.replace(half, id="again", label="again"))
    for found in (records, others):
        (call,) = profiles_of(Recording(found))
        (cause,) = (cause for cause in call.causes if cause.kind == "attention")
        notes = [note for note in cause.notes if "building the mask" in note]
        assert notes == ["building the mask costs 38.0 µs more: eager does not run that line"]
