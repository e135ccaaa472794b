"""The rules by which Inductor rejects a fusion: short stable names for its reasons.

The reasons are the format strings of `WhyNoFuse` in torch/_inductor (scheduler.py, choices.py,
codegen/simd.py, codegen/cutlass/). They vary slightly between versions, so each rule has a pattern.
A reason that matches no pattern becomes a rule named after its first words.
"""

from __future__ import annotations

import functools
import re

RULES: tuple[tuple[str, str], ...] = (
    ("indexing-mismatch", r"no shared data due to indexing mismatch"),
    ("no-shared-data", r"no shared data"),
    ("between", r"intermediate nodes between"),
    ("memory-deps", r"memory deps did not match"),
    ("order", r"node1 must go before node2"),
    ("cycle", r"will create cycle|create (a )?cycle"),
    ("extern", r"node[12]( is|'s).*(extern|triton kernel)|node1 and node2 uses different buf"),
    ("extern-epilogue", r"epilogue reads from buffers"),
    ("nop", r"node[12] is nop"),
    ("grouped", r"grouped node"),
    ("device", r"device mismatch"),
    ("strict-order", r"strict (sum|reduction) ordering|incompatible reduction contracts"),
    ("too-many-nodes", r"exceeds max fusion"),
    ("too-many-buffers", r"fusion_prevent_too_many_reads_and_writes"),
    ("little-shared-data", r"score_fusion_memory_threshold"),
    ("too-far-apart", r"too far away"),
    ("peak-memory", r"increase peak memory"),
    ("forbidden", r"fusion for buffer explicit disabled"),
    ("tiling", r"tiling mismatch|invalid tiling|invalid loop order and tiling"),
    ("domain", r"numel/rnumel|numel incompatibility"),
    ("split-scan", r"[Ss]plit scan"),
    ("prologue", r"prologue"),
    ("epilogue", r"epilogue"),
    ("foreach", r"foreach"),
    ("benchmark", r"benchmark|slowdown|register spilling"),
    ("template", r"template"),
)
"""(rule, pattern searched in Inductor's reason); the first match names the rule."""

SILENT = {
    "already-fused": "earlier fusions of this round put both into one node",
    "stream": "the two run on different streams",
    "mix-order": "one of the two is a pair of reductions over different axes",
    "nested-reduction": "one of the two is a reduction nested in another",
    "member": "a member of the group was rejected",
    "domain": "their iteration domains differ, and they share no outer loop",
    "after-reduction": "the first is a reduction and they share no outer loop to fuse at",
    "outer-loop": "one of the two is already fused at an outer loop only",
    "max-horizontal": "more nodes than config.cpp.max_horizontal_fusion_size",
    "template": "the C++ template does not support such a node",
    "unstated": "Inductor rejected the pair without a reason",
}
"""Rules of the checks that reject without a reason, in our words."""

PREFERENCES = {
    "no-shared-data": "one loop nest would save no memory traffic; the result is the same",
    "indexing-mismatch": "they read a buffer in different orders, so fusing saves no reads",
    "little-shared-data": "they share less than config.score_fusion_memory_threshold",
    "too-far-apart": "buffers in between would live longer; the result is the same",
    "peak-memory": "buffers would live longer; the result is the same",
    "too-many-nodes": "config.max_fusion_size limits the compile time",
    "too-many-buffers": "config.max_fusion_unique_io_buffers limits the register pressure",
    "max-horizontal": "config.cpp.max_horizontal_fusion_size limits the size of a loop body",
    "tiling": "config.triton.tiling_prevents_*_fusion prefers each one's own tiling",
}
"""Rules that are heuristics of Inductor, with the reason for each. An override may force such a
pair, provided that the same test passes with the heuristics switched off."""

FORBIDDEN = {
    "strict-order": "a reduction must add in a fixed order",
    "between": "a third operation has to run between the two",
    "memory-deps": "the second reads elements that the first has not written yet",
    "order": "the second has to run before the first",
    "cycle": "each would have to wait for the other",
    "extern": "a library call has no loop nest",
    "extern-epilogue": "the called kernel can read only its own results",
    "nop": "nothing is computed there",
    "grouped": "they were put into one group to run in a fixed order",
    "device": "they run on different devices",
    "stream": "they run on different streams",
    "forbidden": "torch keeps this buffer out of all fusions",
    "domain": "the backend has no loop nest for both iteration domains",
    "after-reduction": "the second needs the finished reduction, and there is no common outer loop",
    "outer-loop": "the backend shares only its outer loop, and not with this node",
    "split-scan": "a scan over several blocks is a separate kernel",
    "prologue": "the template cannot take this as a prologue",
    "epilogue": "the template cannot take this as an epilogue",
    "template": "the template does not support such a node",
    "foreach": "their lists do not match",
    "benchmark": "torch measured both, and measurements are not overridden",
    "already-fused": "they are already in one loop nest",
    "mix-order": "the kernel of two reductions over different axes does not support such a node",
    "nested-reduction": "the kernel of nested reductions does not support such a node",
    "member": "a member of the group forbids it",
    "inlined": "lowering put them into one scheduler node: nothing is left to fuse",
    "unstated": "torch gives no reason, so correctness may depend on it",
}
"""Rules that an override cannot break, with what each protects. A rule in neither table is new in
torch and is treated as forbidden."""


def why_forbidden(rule: str) -> str:
    """Why an override cannot break this rule; "" for a rule that is a preference."""
    if rule in PREFERENCES:
        return ""
    return FORBIDDEN.get(rule, "a torch rule that tcw does not know to be a preference")


_COMPILED = tuple((rule, re.compile(pattern)) for rule, pattern in RULES)
_WORD = re.compile(r"[a-z0-9]+")


@functools.lru_cache(maxsize=512)
def rule_of(reason: str) -> str:
    """The rule behind one of Inductor's reasons, given as its format string or filled in."""
    for rule, pattern in _COMPILED:
        if pattern.search(reason):
            return rule
    words = _WORD.findall(re.sub(r"%[sd]|\{[^}]*\}", " ", reason).lower())
    return "-".join(words[:5]) or "unstated"
