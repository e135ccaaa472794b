"""What two runs say of the caches: which part of a key changed, what stands behind it, its cost."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.key_components import key_texts, read_key
from tcw.compiler.trace.records import (
    AnyRecord,
    CacheLookup,
    End,
    Environment,
    FrameEnd,
    Graph,
    Location,
    Node,
    Settings,
    Start,
    Text,
)
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.cache_changes import cache_changes
from tcw.viewers.text.diff import diff_lines
from tcw.viewers.text.lines import to_text

FILE = "/home/me/m.py"
COMPONENTS = {
    "gm": ("g1", "def forward(self, x): ..."),
    "example_inputs[0]": ("i1", "TensorMetadata(shape=torch.Size([8, 16]), stride=(16, 1))"),
    "torch_version": ("t1", "..."),
    "inductor_config[max_fusion_size]": ("c1", "64"),
    "inputs_to_check[0]": ("n1", "0"),
}


def run(
    verdict: str = "miss",
    at: float = 1000.0,
    *,
    scale: str = "2",
    key: str = "k1",
    cached: bool = True,
    known: bool = True,
    **changed: tuple[str, str],
) -> Recording:
    """A run of one compile that looks into both caches; `changed`: other components of the keys."""
    names = {"config": "inductor_config[max_fusion_size]", "x": "example_inputs[0]", "gm": "gm",
             "torch": "torch_version", "check": "inputs_to_check[0]"}  # fmt: skip
    made_of = COMPONENTS | {names[name]: value for name, value in changed.items()}
    lines = [f"[{hashed}] {name}: {text}" for name, (hashed, text) in made_of.items()]
    texts = key_texts(read_key("0/0", lines)) if known else ()
    nodes = (
        Node(name="l_x_", op="placeholder", target="L_x_"),
        Node(name="mul", op="call_function", target="operator.mul", args=f"l_x_, {scale}",
             inputs=("l_x_",), location=Location(file=FILE, line=5)),
    )  # fmt: skip
    reason = "a custom op" if verdict == "bypass" else ""
    lookups = [
        CacheLookup(cache=cache, verdict=verdict, compile_id="0/0", graph=graph, key=key + cache,  # type: ignore[arg-type]
                    components=tuple(map(text_hash, texts)), missed=reason,
                    saved_seconds=4.0 if verdict == "hit" else None)
        for cache, graph in (("aot autograd", ""), ("fx graph", "0/0/inference"))
    ]  # fmt: skip
    records: list[AnyRecord] = [
        Start(schema_version=1, tool_version="", python="", platform="", pid=1, time=at,
              settings=Settings(file=FILE, cached=cached)),
        *(Text(hash=text_hash(text), body=text) for text in texts),
        Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes),
        *lookups,
        FrameEnd(compile_id="0/0", status="compiled", seconds=12.0, attempts=1),
        End(status="ok", seconds=20.0),
    ]  # fmt: skip
    return Recording(records)


def said(base: Recording, other: Recording) -> list[tuple[str, str]]:
    found = difference(base, other).effects
    return [(one.words, one.cause) for one in found if one.kind == "cache"]


MISSED = "aot autograd, fx graph missed in 0/0; compiling took 12.0 s"


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        ({"config": ("c2", "7")}, "torch._inductor.config.max_fusion_size: 64 → 7"),
        (
            {"x": ("i2", "TensorMetadata(shape=torch.Size([9, 16]), stride=(16, 1))")},
            "input x: shape [8, 16] → [9, 16]",
        ),
        ({"torch": ("t2", "...")}, "another torch"),
        # what follows from another component is not named
        ({"config": ("c2", "7"), "check": ("n2", "1")},
         "torch._inductor.config.max_fusion_size: 64 → 7"),
        ({"check": ("n2", "1")}, "inputs_to_check[0]: 0 → 1"),
    ],
)  # fmt: skip
def test_what_a_miss_missed(changed: dict[str, tuple[str, str]], because: str) -> None:
    assert said(run(), run(at=2000.0, key="k2", **changed)) == [(MISSED, because)]


def test_a_changed_line() -> None:
    base, other = run(), run(at=2000.0, key="k2", scale="3", gm=("g2", "def forward(self, x): .."))
    (effect,) = [effect for effect in difference(base, other).effects if effect.kind == "cache"]
    assert effect.cause == "the graph: mul is operator.mul(l_x_, 3)"
    assert effect.line is not None
    assert (effect.line.file, effect.line.line) == (FILE, 5)
    text = to_text(diff_lines(difference(base, other), "a", "b", 100), 100)
    assert "m.py:5" in text
    assert MISSED.replace("aot", "Aot", 1) in text or MISSED in text


def test_an_entry_that_is_gone() -> None:
    ((words, because),) = said(run(), run(at=2000.0))
    assert words == MISSED
    assert because.startswith("its key equals the other run's")
    assert said(run(at=2000.0), run()) == []  # it ran first
    assert said(run(), run(at=1001.0)) == []  # both began cold, at the same time


def test_served_and_no_longer_served() -> None:
    assert said(run(), run("hit", 2000.0)) == [
        ("served by caches: aot autograd, fx graph; 4.0 s of compiling saved", "")
    ]
    ((words, _because),) = said(run("hit"), run(at=2000.0))
    assert words == MISSED
    assert said(run("hit"), run("hit", 2000.0)) == []


def test_bypasses() -> None:
    found = said(run(), run("bypass", 2000.0))
    assert found[0][0] == "a new cache bypass: aot autograd: a custom op"
    found = said(run("bypass"), run(at=2000.0, key="k2"))
    assert ("a cache bypass gone: fx graph: a custom op", "") in found


def test_what_is_not_known_is_said() -> None:
    ((_words, because),) = said(run(), run(at=2000.0, key="k2", known=False))
    assert because == "torch does not say what this key consists of"


def test_a_recording_with_caches_of_its_own_misses_nothing() -> None:
    other = run(at=2000.0, key="k2", cached=False, config=("c2", "7"))
    assert said(run(cached=False), other) == []


def test_the_environment_variable_behind_a_setting() -> None:
    setting = "torch._inductor.config.max_fusion_size"
    other = run(at=2000.0, key="k2", config=("c2", "7"))
    variable = {setting: "TORCHINDUCTOR_MAX_FUSION_SIZE=7"}
    told = Recording([*other.records, Environment(torch="2.13.0", variables=variable)])
    for base, after, which in ((run(), told, "this run"), (told, run(at=3000.0), "the other run")):
        (change,) = cache_changes(Alignment(base, after))
        assert change.because.startswith(f"{setting}: ")
        assert change.because.endswith(f" (TORCHINDUCTOR_MAX_FUSION_SIZE=7 in {which})")
