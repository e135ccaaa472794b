"""The rules by which Inductor rejects a fusion: short stable names for the reasons that it gives.

The reasons are the format strings of `WhyNoFuse` in torch/_inductor (scheduler.py, choices.py,
codegen/simd.py, codegen/cutlass/); they change a little from version to version, so each rule has
a pattern. A reason that no pattern knows becomes a rule named by its first words.
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
"""(rule, pattern searched in Inductor's reason); the first that is found names it."""

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
    "template": "the C++ template takes no such node",
    "unstated": "Inductor said no and gave no reason",
}
"""Rules of the checks that answer no without a word, in our words."""

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
