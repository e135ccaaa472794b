"""Online softmax on vectors: for which rows the sum is computed while the maximum is being found.

Each chain of accumulators of the sum has a top, equal in all lanes, above everything seen so far.
If a vector contains a greater element, which is rare, the top is raised and the sum rescaled.
"""

from __future__ import annotations

from tcw.compiler.codegen.cpp.nests.schedule import Schedule
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.online_sums import with_online_sums
from tcw.compiler.loops.dtypes import REDUCED
from tcw.compiler.loops.nest import Nest, Reduction, reads_in

LONG = 1 << 11
"""Row length from which the rare rescaling costs less than a second pass."""
FAR = 1 << 18
"""The same if the exponentials are recomputed instead of kept: at this length neither their buffer
nor the row fits in a near cache. With 16-bit floats, keeping them is faster at any length."""


def online(facts: Facts, schedule: Schedule) -> Nest:
    """The nest with such sums replaced, if its rows are long."""
    nest, lane = facts.nest, schedule.lane
    if lane is None or schedule.lanes == 1 or schedule.inner or schedule.tile is not None:
        return nest
    size = nest.axes[lane].size
    if facts.reduced != {lane} or not isinstance(size, int) or size < LONG:
        return nest
    return with_online_sums(facts, lambda top: _is_far(facts, top))


def _is_far(facts: Facts, top: Reduction) -> bool:
    size = facts.nest.axes[top.over[0]].size
    narrow = any(part.dtype in REDUCED for part in reads_in(facts.nest.statements))
    return isinstance(size, int) and size >= FAR and not narrow
