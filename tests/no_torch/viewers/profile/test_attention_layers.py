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
        record.id
        for record in records
        if isinstance(record, EagerOperation) and "scaled" in record.operation
    }
    regions = [
        record
        for record in records
        if isinstance(record, Region) and attentions & set(record.operations)
    ]
    assert len(regions) > 1
    apart = structs.replace(regions[0], label="another")
    (whole,) = profiles_of(Recording(records))
    (split,) = profiles_of(
        Recording([apart if record is regions[0] else record for record in records])
    )
    assert len(split.rows) == len(whole.rows) + 1
    one, other = (
        [cause for cause in found.causes if cause.kind == "attention"] for found in (whole, split)
    )
    assert len(one) == len(other) == 1
    assert other[0].seconds == pytest.approx(one[0].seconds)
    assert other[0].title == one[0].title


def test_a_mask_made_by_several_kernels_is_one_note() -> None:
    records = masked_attention()
    (made,) = (record for record in records if isinstance(record, Region) and not record.operations)
    half = structs.replace(made, difference=made.difference / 2)
    others = [half if record is made else record for record in records]
    others.insert(others.index(half), structs.replace(half, id="again", label="again"))
    for found in (records, others):
        (call,) = profiles_of(Recording(found))
        (cause,) = (cause for cause in call.causes if cause.kind == "attention")
        notes = [note for note in cause.notes if "building the mask" in note]
        assert notes == ["building the mask costs 38.0 µs more: eager does not run that line"]
