"""Guards: what a caller can change one by one, every other guard in exactly one kind."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.records import (
    AnyRecord,
    Argument,
    CallStart,
    DynamicSize,
    Guard,
    Guards,
    Location,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.guard_groups import KINDS, GuardGroups, guard_groups, kind_words
from tcw.viewers.tables.guard_lines import condition_rows
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.sections import SectionView, section
from tests.no_torch import traces

SELF = "L['self']"


def guard(kind: str, source: str = "", name: str = "", value: str = "", *code: str) -> Guard:
    return Guard(kind=kind, source=source, name=name or source, value=value, code=code)


def tensor(name: str, source: str = "") -> Guard:
    value = "f32[4, 8] stride (8, 1) cpu"
    return Guard(
        kind="TENSOR_MATCH", name=name, source=source or f"L['{name}']", value=value,
        location=traces.at(6),
    )  # fmt: skip


GUARDS = (
    guard("GRAD_MODE", name="grad mode", value="on"),
    guard("SHAPE_ENV", "", "symbolic shapes", "2 <= x.size(0)", "2 <= L['x'].size()[0]"),
    guard("GLOBAL_STATE", name="global state", value="2 threads"),
    guard("SEQUENCE_LENGTH", "L['items']", "items", "list of 2"),
    guard("CONSTANT_MATCH", "L['step']", "step", "3"),
    guard("CONSTANT_MATCH", "L['step']", "step", "3"),
    tensor("x"),
    guard("TYPE_MATCH", "L['x']", "x", "Tensor"),
    guard("TYPE_MATCH", "L['rate']", "rate", "float"),
    guard("CLOSURE_MATCH", "L['inner']", "inner", "function sin"),
    guard("CONSTANT_MATCH", "L['inner'].__code__", "inner.__code__", "code of sin"),
    guard(
        "DICT_KEYS_MATCH", "L['table']", "table", "{'a': long, 'b': long}", "len(L['table']) == 2",
        "list(dict.keys(L['table'])) == ['a', 'b']",
    ),
    guard("CONSTANT_MATCH", f"{SELF}.scale", "self.scale", "0.5"),
    guard("CONSTANT_MATCH", f"{SELF}._modules['ln'].eps", "self.ln.eps", "1e-05"),
    guard("CONSTANT_MATCH", f"{SELF}._modules['a'].training", "self.a.training", "False"),
    guard("CONSTANT_MATCH", f"{SELF}._modules['b'].training", "self.b.training", "False"),
    guard("CONSTANT_MATCH", "G['DEPTH']", "DEPTH", "4"),
    guard("CONSTANT_MATCH", "G['__import_lib'].flag", "lib.flag", "True"),
    tensor("self.ln.weight", f"{SELF}._modules['ln']._parameters['weight']"),
    *(
        guard("EMPTY_NN_MODULE_HOOKS_DICT", f"{SELF}.{one}", f"self.{one}", "empty")
        for one in ("a._forward_hooks", "a._backward_hooks", "b._forward_hooks")
    ),
    guard("NEWER_MATCH", "L['self']", "self"),
)  # fmt: skip


def record(*guards: Guard, compile_id: str = "0/0", **more: object) -> Guards:
    return Guards(
        compile_id=compile_id, function="forward", guards=guards, check_us=221.721, **more
    )  # type: ignore[arg-type]


CALL = CallStart(
    call=1, arguments=(Argument(name="inner"), Argument(name="rate"), Argument(name="x"))
)


def groups(*guards: Guard) -> GuardGroups:
    one = record(*guards)
    return guard_groups(Recording([CALL, one]), one)


def text(*records: AnyRecord, detail: str = "", width: int = 100) -> str:
    recording = Recording([*traces.opening(), CALL, *records])
    summary = summarise(recording)
    view = SectionView(recording, summary, width, detail)
    return to_text(section("guards")(view), width)


def test_what_a_caller_can_change_comes_first() -> None:
    assert [(condition.name, condition.value) for condition in groups(*GUARDS).conditions] == [
        ("x", "f32[4, 8] stride (8, 1) cpu"),
        ("step", "3"),
        ("items", "list of 2"),
        ("table", "keys 'a', 'b'"),
        ("rate", "float"),
        ("inner", "function sin"),
        ("self.scale", "0.5"),
        ("DEPTH", "4"),
        ("training of 2 modules", "False"),
        ("symbolic shapes", "2 <= x.size(0)"),
        ("grad mode", "on"),
        ("global state", "2 threads"),
    ]


def test_the_others_by_kind() -> None:
    kinds = {kind.kind: (len(kind.guards), kind.words) for kind in groups(*GUARDS).kinds}
    assert kinds == {
        "CONSTANT_MATCH": (4, "4 values unchanged"),
        "EMPTY_NN_MODULE_HOOKS_DICT": (3, "no hooks on 2 modules"),
        "TENSOR_MATCH": (1, "1 parameter or buffer of self, f32"),
        "TYPE_MATCH": (1, "1 object of the same class"),
        "NEWER_MATCH": (1, ""),
    }


def test_every_guard_is_in_one_place() -> None:
    found = groups(*GUARDS)
    everywhere = [one for group in (*found.conditions, *found.kinds) for one in group.guards]
    assert sorted(map(id, everywhere)) == sorted(map(id, GUARDS))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_words_for_one_and_for_many(kind: str) -> None:
    several = [guard(kind, f"L['a'].{n}", f"a.{n}") for n in range(3)]
    for guards in (several[:1], several):
        assert kind_words(kind, guards)
        assert "  " not in kind_words(kind, guards)


def test_an_unknown_kind_is_shown_plainly() -> None:
    assert "1  NEWER_MATCH" in text(record(*GUARDS))
    assert "no description" in text(record(*GUARDS))


def test_names_values_and_line_numbers_are_never_cut() -> None:
    long = "self.encoder.layer[0].attention.output.LayerNorm.a_rather_long_name_of_a_scale"
    many = guard("CONSTANT_MATCH", "L['names']", "names", repr(tuple(range(60))))
    shown = text(record(tensor(long, "L['y']"), many), width=80)
    assert long in shown
    assert "f32[4, 8] stride (8, 1) cpu" in shown
    assert "norm.py:6" in shown
    assert "".join(shown.split()).count("58,59)") == 1
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_all_shows_each_guard() -> None:
    shown = text(record(*GUARDS), detail="all")
    for one in GUARDS:
        assert one.name in shown


def test_of_a_recompile_what_differs() -> None:
    size = DynamicSize(symbol="s7", name="x.size(0)", source="", value=6, lower=2)
    later = record(*GUARDS[:6], *GUARDS[7:], compile_id="0/1", dynamic=(size,))
    shown = text(record(*GUARDS), later).split("guards 0/1")[1]
    assert "dynamic    x.size(0) (s7, at least 2)" in shown
    assert "11 conditions as in 0/0" in shown
    assert "step" not in shown
    no_kinds = text(record(*GUARDS), record(GUARDS[0], compile_id="0/1")).split("guards 0/1")[1]
    assert no_kinds.splitlines()[-1].strip() == "1 condition as in 0/0"


def test_the_check_is_timed_in_microseconds() -> None:
    assert "22 guards, 222 µs per check (cold)" in text(record(*GUARDS[:22]))


def test_guards_are_no_longer_offered_once_all_are_shown() -> None:
    recording = Recording([*traces.opening(), CALL, record(*GUARDS)])
    lines = to_text(explain(recording, show=("guards=all",)), 100)
    assert "more: " not in lines or "guards" not in lines.rpartition("more: ")[2]


def test_each_condition_on_sizes_has_its_own_line() -> None:
    def shown(lines: tuple[Location | None, ...]) -> list[tuple[str, str, int]]:
        sizes = Guard(
            kind="SHAPE_ENV", name="symbolic shapes", source="", lines=lines,
            values=("4 <= x.size(0)", "x.size(1) == 8; and more"),
            code=("4 <= L['x'].size()[0]", "L['x'].size()[1] == 8"),
        )  # fmt: skip
        record = Guards(compile_id="0/0", guards=(sizes,))
        rows = condition_rows(guard_groups(Recording([record]), record).conditions)
        return [
            (name, value, one.location.line if one.location else 0) for name, value, one in rows
        ]

    assert shown((traces.at(6), None)) == [
        ("symbolic shapes", "4 <= x.size(0)", 6), ("", "x.size(1) == 8; and more", 0),
    ]  # fmt: skip
    assert [row[2] for row in shown(())] == [0, 0]
