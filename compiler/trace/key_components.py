"""Cache keys, decomposed: what differs between two of them, in one run or in two.

torch hashes a key from components and prints them as `[hash] name: text`
(`FxGraphCachePickler.debug_lines` in torch/_inductor/codecache.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tcw.compiler.trace.commas import split_at_commas
from tcw.compiler.trace.records import CacheLookup, TextHash

_LINE = re.compile(r"^\[(?P<hash>\S+)\] (?P<name>[^:\n]+): (?P<text>.*)", re.DOTALL)
_KEPT = 2000
_STORED = 400
"""Characters of a component that a trace keeps: its hash shows whether it differs."""
_REMEMBERED = 64
_MOST_COMPONENTS = 10_000
_LONGEST_KEY = 200
_SHOWN = 6
_WIDTH = 120


CODE = "code"
"""The component that is a Triton kernel's function."""
GRAPH = "gm"
"""The component that is the graph's code."""
INPUT = "example_inputs["
_CONFIGS = {
    "inductor_config": "torch._inductor.config",
    "inductor_config_comms": "torch._inductor.config.aten_distributed_optimizations",
    "autograd_config": "torch._functorch.config",
}
_ITEM = re.compile(r"^(?P<name>\w+)\[(?P<item>.*)\]$", re.DOTALL)
_TEXTLESS = {"torch_version": "another torch", "system_info": "another machine, driver or Triton"}
"""Components that torch prints as hashes."""
_OTHERS = {
    "deterministic_algorithms_settings": "torch.use_deterministic_algorithms",
    "deterministic_algorithms": "torch.use_deterministic_algorithms",
    "cpp_runtime_thread_count": "torch.set_num_threads",
    "default_dtype": "torch.set_default_dtype",
    "grad_enabled": "torch.set_grad_enabled",
    "cuda_matmul_settings": "torch.backends.cuda.matmul",
    "autocast_state": "torch.autocast",
}
"""Component -> what a user sets to change it."""
_PAIR = re.compile(r"(?P<what>\w+)=(?P<one>[^→;]+) → (?P=what)=(?P<other>[^→;]+)")
_SIZE = re.compile(r"torch\.Size\((.*)\)")
_FOLLOW = frozenset({"inputs_to_check", "static_input_idxs", "fx_kwargs"})
"""Components that follow from others, and are named only if nothing else changed."""


@dataclass(frozen=True)
class Key:
    """A key that was looked up."""

    graph: str
    components: dict[str, tuple[str, str]]
    """Name -> (hash, the start of its text)."""


def read_key(graph: str, lines: Iterable[str]) -> Key:
    """The components that torch printed; lines of another form are skipped."""
    components = {}
    for line in lines:
        match = _LINE.match(line)
        if match:
            components[match["name"]] = (match["hash"], match["text"][:_KEPT])
    return Key(graph, components)


def key_texts(key: Key) -> tuple[str, ...]:
    """The components as texts for a trace, one a line: the settings, which most keys of a run
    share, then the rest. Empty without components."""
    rows: tuple[list[str], list[str]] = ([], [])
    for name, (hashed, text) in key.components.items():
        body = text[:_STORED].replace("\\", "\\\\").replace("\n", "\\n")
        rows["config[" not in name].append(f"[{hashed}] {name}: {body}")
    return tuple("\n".join(side) for side in rows if side)


def key_of_texts(graph: str, texts: Iterable[str]) -> Key:
    """The key that `key_texts` wrote."""
    lines = (line for text in texts for line in text.split("\n"))
    return read_key(graph, (_ESCAPE.sub(lambda match: _ESCAPES[match[0]], line) for line in lines))


_ESCAPES = {"\\\\": "\\", "\\n": "\n"}
_ESCAPE = re.compile(r"\\\\|\\n")


def nearest_key(key: Key, known: Iterable[Key]) -> Key | None:
    """The known key with the most components in common; on a tie, the latest."""
    best, most = None, 0
    for other in known:
        common = sum(
            other.components.get(name, ("",))[0] == value[0]
            for name, value in key.components.items()
        )
        if common >= most and common:
            best, most = other, common
    return best


def changed_components(old: Key, new: Key) -> list[str]:
    """The names of the components that differ."""
    names = dict.fromkeys((*new.components, *old.components))
    return [
        name
        for name in names
        if old.components.get(name, ("",))[0] != new.components.get(name, ("",))[0]
    ]


def without_consequences(names: Sequence[str]) -> list[str]:
    """Names of components without those that follow from the others."""
    return [name for name in names if _ITEM.sub(r"\g<name>", name) not in _FOLLOW] or list(names)


def component_words(
    name: str, old: Key, new: Key, called: Callable[[str], str] = "input {}".format
) -> str:
    """One component that differs: the setting, or the input, and its values. `called`: what the
    user calls an input, by its number."""
    match = _ITEM.match(name)
    first, item = (match["name"], match["item"]) if match else (name, "")
    before, after = (side.components.get(name, ("", ""))[1] for side in (old, new))
    if name in old.components and name in new.components:
        values = _PAIR.sub(_tidy, value_difference(before, after))
    else:
        values = f"is {'new' if name in new.components else 'gone'}"
    if name == GRAPH:
        return "the graph"
    if name == CODE:
        return f"the code of {after}"
    if first in _CONFIGS:
        return f"{_CONFIGS[first]}.{item}: {values}"
    if name.startswith(INPUT):
        return f"{called(item)}: {values}"
    if first in _TEXTLESS:
        return _TEXTLESS[first]
    if first in _OTHERS:
        return f"{_OTHERS[first]}: {values}"
    return f"a custom pass ({name})" if first.endswith("_pass") else f"{name}: {values}"


def _tidy(pair: re.Match[str]) -> str:
    """`shape=torch.Size([8]) → shape=torch.Size([9])` -> `shape [8] → [9]`."""
    sides = [_SIZE.sub(r"\1", pair[name]) for name in ("one", "other")]
    return f"{pair['what']} {' → '.join(sides)}"


def value_difference(before: str, after: str) -> str:
    """`shape=[8] → shape=[9]`: the differing parts of two texts, if they have parts."""
    old, new = _parts(before), _parts(after)
    if len(old) == len(new) > 1:
        pairs = [f"{a} → {b}" for a, b in zip(old, new, strict=True) if a != b]
        if pairs:
            return "; ".join(_cut(pair) for pair in pairs[:_SHOWN])
    if before == after:
        return "differs (in parts that torch does not print)"
    if len(before) + len(after) > 2 * _WIDTH:
        return "differs"
    return f"{before} → {after}"


def why_missed(key: Key, known: Iterable[Key]) -> str:
    """Why a key was not found, as far as known."""
    other = nearest_key(key, known)
    if other is None:
        return "no entry with this key"
    found = [
        component_words(name, other, key)
        for name in without_consequences(changed_components(other, key))
    ]
    if not found:
        return "no entry with this key; an equal key was looked up before"
    shown = "; ".join(found[:_SHOWN])
    more = f"; {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    whose = f"the key of {other.graph}" if other.graph else "the nearest key before"
    return f"no entry with this key; against {whose}: {shown}{more}"


class Lookups:
    """The keys that a run has looked up so far, which explain its misses."""

    def record(
        self,
        cache: str,
        verdict: Literal["hit", "miss", "bypass"],
        compile_id: str,
        graph: str,
        info: Mapping[str, Any],
        saved_seconds: float | None,
        text: Callable[[str], TextHash],
    ) -> CacheLookup:
        """The record of a lookup. `info`: torch's own description (`CacheInfo` in
        torch/_inductor/codecache.py); `text` stores a text."""
        lines = info.get("components")
        lines = lines[:_MOST_COMPONENTS] if isinstance(lines, list) else ()
        key = read_key(graph or compile_id, (line for line in lines if isinstance(line, str)))
        return CacheLookup(
            cache=cache,
            verdict=verdict,
            compile_id=compile_id,
            graph=graph,
            key=str(info.get("key") or "")[:_LONGEST_KEY],
            missed=self.add(cache, graph, verdict, key, info)[:_KEPT],
            saved_seconds=saved_seconds,
            components=tuple(filter(None, map(text, key_texts(key)))),
        )

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[Key]] = {}

    def add(self, cache: str, graph: str, verdict: str, key: Key, info: Mapping[str, Any]) -> str:
        """Take in a lookup. Returns why it missed or was bypassed, "" for a hit.

        `info`: torch's own description (`CacheInfo` in torch/_inductor/codecache.py).
        """
        kind = graph.rpartition("/")[2]  # keys of forward graphs do not explain a backward's miss
        known = self._known.setdefault((cache, kind), [])
        words = ""
        if verdict == "bypass":
            words = str(info.get("cache_bypass_reason") or "torch gives no reason")
        elif verdict == "miss":
            words = _why(key, known, info)
        if key.components:
            known.append(key)
            del known[:-_REMEMBERED]
        return words


def _why(key: Key, known: Sequence[Key], info: Mapping[str, Any]) -> str:
    if info.get("cache_status_detailed") == "guard_miss":
        condition = info.get("cache_status_guard_expr") or "its guards"
        return f"an entry with this key, but not for these sizes: {condition}"
    if info.get("cache_status_detailed") == "hit":
        return "the entry is there, but the code that it points to is not"
    return why_missed(key, known)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _parts(text: str) -> list[str]:
    """`A(x=1, y=[2, 3])` -> [`x=1`, `y=[2, 3]`]: split at commas outside inner brackets."""
    start, end = text.find("("), text.rfind(")")
    if start < 0 or end < start:
        return [text]
    return split_at_commas(text[start + 1 : end])
