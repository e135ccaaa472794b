"""Which sites of an eager call correspond to those of a captured graph.

Both name a line of the user's file in one module instance, mostly in the same way. They differ if a
module is reachable by several paths, and if Dynamo compiled a frame by itself (below a graph
break), which names its modules by their paths from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from tcw.compiler.measure.regions.origins import Site

Canonical = Callable[[str], str]
"""As `ModulePaths.canonical` of the eager call: the first path of the module at a path."""


def as_captured(
    graphs: Iterable[Collection[Site]], eager: Collection[Site], canonical: Canonical
) -> dict[Site, Site]:
    """The sites of the eager call that captured graphs have under another name -> that name."""
    found: dict[Site, Site] = {}
    exact: set[Site] = set()
    for captured in graphs:
        exact.update(captured)
        for site, same in same_sites(captured, eager, canonical).items():
            for other in same:
                found.setdefault(other, site)
    return {other: site for other, site in found.items() if other not in exact}


def same_sites(
    captured: Iterable[Site], eager: Iterable[Site], canonical: Canonical = lambda path: path
) -> dict[Site, tuple[Site, ...]]:
    """For each site of one captured graph, the corresponding sites of the eager call.

    A frame compiled by itself may stand for several instances: those that match the most of the
    graph's sites. A site that eager does not have maps to none.
    """
    captured = list(captured)
    by_line: dict[tuple[str, int], dict[str, Site]] = {}
    for site in eager:
        by_line.setdefault(site[1:], {})[site[0]] = site
    found_in: Counter[str] = Counter()
    for site in captured:
        there = by_line.get(site[1:], {})
        found_in.update({start for path in there for start in _instances(site[0], path)})
        if canonical(site[0]) in there and site[0] not in there:
            found_in[""] += 1
    most = max(found_in.values(), default=0)
    instances = [start for start, count in found_in.items() if count == most]
    if "" in instances:  # the model's own frame, or one indistinguishable from it
        instances = [""]
    found: dict[Site, tuple[Site, ...]] = {}
    for site in captured:
        there = by_line.get(site[1:], {})
        paths = {".".join(part for part in (start, site[0]) if part) for start in instances}
        paths = {path if path in there else canonical(path) for path in paths}
        found[site] = tuple(there[path] for path in sorted(paths) if path in there)
    return found


def _instances(inner: str, path: str) -> Iterator[str]:
    """The path of the module from which `inner` leads to `path`."""
    if path == inner:
        yield ""
    elif not inner:
        yield path
    elif path.endswith(f".{inner}"):
        yield path[: -len(inner) - 1]
