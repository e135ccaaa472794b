"""One fused attention in eager, several kernels under capture, and the mask that caused it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tcw.compiler.trace.records import Advice, EagerOperation, Graph, Location, Node
from tcw.viewers.summary.place import Place, place_of
from tcw.viewers.summary.profile.causes.cause import Cause, Suggestion, other_engine
from tcw.viewers.summary.profile.causes.remedies import of_attention
from tcw.viewers.summary.profile.causes.step_words import (
    bare,
    counted,
    is_fused_attention,
    named,
    split_arguments,
    step_word,
)
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import seconds_text, tensor_text

_MASK_PLACE = 3
"""Of `attn_mask` in `scaled_dot_product_attention(q, k, v, attn_mask)`."""


_SHAPE_ONLY = re.compile(r"(size|shape|_like|new_\w+|getattr)(\.\w+)?$")
"""Operations that use the sizes of a tensor, not its data."""


@dataclass(frozen=True)
class Mask:
    """What an attention is given as its mask in the captured graph."""

    node: Node
    line: Location | None
    """Where it was computed."""
    lines: tuple[Location, ...]
    """Of all nodes it is computed from."""
    inputs: tuple[str, ...]
    """The model's inputs it is computed from: `keep`."""


def attention(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """One cause for all attentions on a line that were lost in the same way."""
    alike: dict[object, list[RegionRow]] = {}
    masks: dict[object, Mask | None] = {}
    for row in rows:
        fused = _fused(row)
        if row.standing != "lost" or not fused:
            continue
        mask = None if any(map(_has_mask, fused)) else _mask_of(index, row)
        same = _stayed(row)
        if same and mask is None:
            continue
        place = place_of(index.recording, fused[0].location) or row.place
        made = (mask.line, mask.inputs) if mask is not None else None
        key = (place, row.phase, bare(fused[0].operation), same, made)
        alike.setdefault(key, []).append(row)
        masks[key] = mask
    for one, together in alike.items():
        yield _cause(index, _together(together), rows, masks[one])


def _fused(row: RegionRow) -> list[EagerOperation]:
    return [operation for operation in row.operations if is_fused_attention(operation.operation)]


def _stayed(row: RegionRow) -> bool:
    """Whether the compiled code calls the same fused attentions as eager."""
    calls = [step.name for step in row.steps if step.kind != "kernel"]
    kept = sorted(bare(name) for name in calls if is_fused_attention(name))
    return kept == sorted(bare(operation.operation) for operation in _fused(row))


def _together(rows: Sequence[RegionRow]) -> RegionRow:
    """Several rows as one, for statements about all of them."""
    return replace(
        rows[0],
        regions=tuple(region for row in rows for region in row.regions),
        steps=tuple(step for row in rows for step in row.steps),
        operations=tuple(operation for row in rows for operation in row.operations),
        difference=sum(row.difference for row in rows),
        noise=sum(row.noise for row in rows),
    )


def _cause(index: Index, row: RegionRow, rows: Sequence[RegionRow], mask: Mask | None) -> Cause:
    """`mask`: a mask that eager's attention does not have."""
    fused, stayed = _fused(row), _stayed(row)
    backward = "backward" in fused[0].operation
    one = "attention backward" if backward else "attention"
    what = f"fused {one}" if len(fused) == 1 else f"{len(fused)} fused {one}s"
    names = named(step.name for step in row.steps)
    if stayed:
        title = f"{what} {'is' if len(fused) == 1 else 'are'} called with a mask"
    else:
        became = counted(step_word(index, step) for step in row.steps) or "nothing"
        title = f"{what} became {became}"
    notes = [f"{named(bare(op.operation) for op in fused)} in eager; compiled: {names}"]
    fixes: list[Advice] = []
    masks: tuple[Suggestion, ...] = ()
    regions = [region.id for region in row.regions]
    place = place_of(index.recording, fused[0].location) or row.place
    seconds, noise = row.difference, row.noise
    if mask is not None:
        title += f", {'' if stayed else 'for '}{_what(mask)} that exists only under capture"
        notes.append(_mask_words(index, mask))
        notes += _looks_at_data(index, rows)
        making = [
            other
            for other in rows
            if not other.operations and _on(other, mask.lines) and other.standing == "lost"
        ]
        if making:
            took = seconds_text(sum(other.difference for other in making))
            lines = {(at.file, at.line) for other in making for at in other.locations}
            unseen = "that line" if len(lines) == 1 else "those lines"
            notes.append(f"building the mask costs {took} more: eager does not run {unseen}")
            regions += [region.id for other in making for region in other.regions]
            seconds += sum(other.difference for other in making)
            noise += sum(other.noise for other in making)
        fixes = _fixes(mask, place, index)
        masks = of_attention(index.recording, place)
    return Cause(
        kind="attention",
        title=title,
        seconds=seconds,
        noise=noise,
        regions=tuple(regions),
        place=place,
        notes=tuple(notes),
        fixes=tuple(fixes),
        suggestions=(*masks, *other_engine(index)),
    )


def _looks_at_data(index: Index, rows: Sequence[RegionRow]) -> list[str]:
    """Where eager reads a value of a tensor and the compiled code does not: eager may have seen
    there that the mask hides nothing."""
    for row in rows:
        words = [bare(operation.operation) for operation in row.operations]
        place = place_of(index.recording, next(iter(row.locations), None))
        if "_local_scalar_dense" in words and not row.steps and row.known and place is not None:
            name = place.file.rpartition("/")[2]
            return [f"eager looks at the data at line {place.line} of {name}; capture cannot"]
    return []


def _what(mask: Mask) -> str:
    return f"the mask of {mask.inputs[0]}" if len(mask.inputs) == 1 else "a mask"


def _mask_words(index: Index, mask: Mask) -> str:
    value = f" ({tensor_text(mask.node.value)})" if mask.node.value else ""
    place = place_of(index.recording, mask.line)
    where = f", made at line {place.line} of {place.file.rpartition('/')[2]}" if place else ""
    return f"the graph's attention has attn_mask={mask.node.name}{value}{where}; eager's has none"


def _fixes(mask: Mask, place: Place | None, index: Index) -> list[Advice]:
    source = " and ".join(mask.inputs[:2]) or "the mask"
    fixes = [
        Advice(
            text=f"check before the compiled call whether {source} masks anything, and pass None "
            "if it does not: capture cannot look at the data"
        )
    ]
    value = mask.node.value
    if value is not None and len(value.shape) == 3 and index.head.clock == "host":
        fixes.append(
            Advice(
                text="fused attention on the CPU takes masks with 2 or 4 dimensions",
                code=f"attn_mask={_argument(mask, place)}[None]",
            )
        )
    return fixes


def _argument(mask: Mask, place: Place | None) -> str:
    """The mask's name at the attention: the graph keeps the names of variables."""
    match = re.search(r"attn_mask\s*=\s*([A-Za-z_]\w*)", place.text) if place else None
    return match[1] if match else mask.node.name


def _on(row: RegionRow, lines: Sequence[Location]) -> bool:
    wanted = {(line.file, line.line) for line in lines}
    return any((location.file, location.line) in wanted for location in row.locations)


def _has_mask(operation: EagerOperation) -> bool:
    """Whether the eager call was given a mask; flash attention on a GPU takes none."""
    positional, keywords = split_arguments(operation.arguments)
    word = bare(operation.operation)
    given = keywords.get("attn_mask") or keywords.get("attn_bias") or "None"
    if "efficient" in word or "cudnn" in word or "overrideable" in word:
        given = positional[_MASK_PLACE] if len(positional) > _MASK_PLACE else given
    return given != "None"


def _mask_of(index: Index, row: RegionRow) -> Mask | None:
    """The mask of the captured attention on one of the row's lines."""
    for graph in index.captured():
        for node in graph.nodes:
            if not node.target.endswith("scaled_dot_product_attention"):
                continue
            if node.location is None or not _on(row, [node.location]):
                continue
            mask = _given(graph, node)
            if mask is not None:
                return mask
    return None


def _given(graph: Graph, node: Node) -> Mask | None:
    positional, keywords = split_arguments(node.args)
    there = len(positional) > _MASK_PLACE
    name = keywords.get("attn_mask") or (positional[_MASK_PLACE] if there else "None")
    nodes = {one.name: one for one in graph.nodes}
    mask = nodes.get(name)
    if mask is None:
        return None
    chain = _made_from(nodes, mask)
    places = {(p.file, p.line): p for one in chain if (p := one.location) is not None}
    made = next((one.location for one in chain if one.location), None)
    inputs = (_input(one) for one in chain if one.op == "placeholder")
    return Mask(
        node=mask,
        line=made,
        lines=tuple(places.values()),
        inputs=tuple(dict.fromkeys(filter(None, inputs))),
    )


def _made_from(nodes: dict[str, Node], node: Node) -> list[Node]:
    """The node and all it is computed from, itself first, without sizes of other tensors."""
    found: dict[str, Node] = {}
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.name in found:
            continue
        found[one.name] = one
        if _SHAPE_ONLY.search(one.target):
            continue
        waiting += [nodes[name] for name in reversed(one.inputs) if name in nodes]
    return list(found.values())


def _input(node: Node) -> str:
    """`L_keep_` -> `keep`; "" for parameters and sizes."""
    match = re.fullmatch(r"L_(?!self_)(?:kwargs_)?(.+?)_", node.target)
    return match[1] if match else ""
