"""From eager time to compiled time, region by region; what is in the noise is one step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcw.compiler.trace.records import CallProfile
from tcw.viewers.summary.profile.rows import RegionRow, Sort, ordered


@dataclass(frozen=True)
class Sums:
    """Seconds of both sides; a difference within the noise counts as none."""

    eager: float
    compiled: float
    noise: float

    @classmethod
    def of(cls, rows: Iterable[RegionRow]) -> Sums:
        """What the rows take together."""
        region_rows = tuple(rows)
        return cls(
            eager=sum(row.eager.median for row in region_rows if row.eager),
            compiled=sum(row.compiled.median for row in region_rows if row.compiled),
            noise=sum(row.noise for row in region_rows),
        )

    @property
    def difference(self) -> float:
        return self.compiled - self.eager

    @property
    def in_noise(self) -> bool:
        return abs(self.difference) <= self.noise


@dataclass(frozen=True)
class Waterfall:
    """The rows that differ, those that do not, what lies outside all regions, and the whole.

    `rows` + `quiet_sums` + `rest` is `total`, on each side.
    """

    rows: tuple[RegionRow, ...]
    """Lost or won."""
    quiet: tuple[RegionRow, ...]
    """In the noise."""
    quiet_sums: Sums
    rest: Sums
    """Host and rest: what the plain call takes beyond its regions."""
    total: Sums
    """The plain calls."""

    @property
    def quiet_words(self) -> str:
        """`56 in noise`, `56 in noise or unknown`."""
        known = all(row.known for row in self.quiet)
        return f"{len(self.quiet)} in noise" + ("" if known else " or unknown")

    def starts(self) -> tuple[float, ...]:
        """Where each row starts between eager and compiled, in seconds."""
        at, found = self.total.eager, []
        for row in self.rows:
            found.append(at)
            at += row.difference
        return tuple(found)


def waterfall_of(head: CallProfile, rows: Sequence[RegionRow], sort: Sort) -> Waterfall:
    differing = [row for row in rows if row.standing != "noise"]
    quiet = ordered([row for row in rows if row.standing == "noise"], sort)
    total = Sums(
        eager=head.eager.median,
        compiled=head.compiled.median,
        noise=head.noise * max(head.eager.median, head.compiled.median),
    )
    measured = Sums.of(rows)
    rest = Sums(
        eager=total.eager - measured.eager,
        compiled=total.compiled - measured.compiled,
        noise=head.eager.spread + head.compiled.spread,
    )
    return Waterfall(
        rows=ordered(differing, sort),
        quiet=quiet,
        quiet_sums=Sums.of(quiet),
        rest=rest,
        total=total,
    )
