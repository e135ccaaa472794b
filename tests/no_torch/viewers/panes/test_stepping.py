from __future__ import annotations

import dataclasses

import msgspec
import pytest

from tcw.compiler.trace.records import AnyRecord, FrameEnd, Guards, Step
from tcw.viewers.panes import bytecode, guard_list, source, stepping
from tcw.viewers.panes.rows import Content
from tcw.viewers.panes.stepping import kind_words, state_of
from tcw.viewers.panes.view import View
from tests.no_torch.stepping import attention, softmax, until
from tests.no_torch.viewers.panes.conftest import view_of


@pytest.fixture(scope="module")
def records() -> list[AnyRecord]:
    return attention()


@pytest.fixture
def replay(records: list[AnyRecord]) -> View:
    """At the call of softmax, with all that comes after it known."""
    view = view_of(records)
    view.step = softmax(records)
    return view


def live(opcode: str = "CALL", line: int = 16) -> View:
    return view_of(until(opcode, line))


def texts(content: Content) -> list[str]:
    return [row.text.rstrip() for row in content.rows]


def row(content: Content, key: str) -> str:
    return next(row.text for row in content.rows if row.key == key)


def test_bytecode_stands_at_the_instruction(replay: View) -> None:
    content = bytecode.content(replay, 40)
    assert (content.subject, content.right[0][0], content.start) == (
        "attention",
        "ip 50 of 71",
        "ip:50",
    )
    assert "▸  50 call            2 arguments" in row(content, "ip:50")
    assert row(content, "ip:44").startswith("   16")
    assert not any(one.key == "ip:49" for one in content.rows), "PRECALL does nothing"
    replay.raw = True
    assert any(one.key == "ip:49" for one in bytecode.content(replay, 40).rows)


def test_bytecode_says_what_is_inlined(replay: View) -> None:
    assert "→ forward" in row(bytecode.content(replay, 60), "ip:11")


@pytest.mark.parametrize(
    ("opcode", "argument", "words"),
    [
        ("BINARY_OP", "5", "*"),
        ("BINARY_OP", "99", "99"),
        ("CALL", "1", "1 argument"),
        ("KW_NAMES", "('dim', 'x')", "dim, x"),
        ("LOAD_FAST", "x", "x"),
    ],
)
def test_arguments_in_words(opcode: str, argument: str, words: str) -> None:
    assert bytecode.argument_words(opcode, argument) == words


def test_stack_and_locals(replay: View) -> None:
    content = stepping.stack(replay, 60)
    assert content.right[0][0] == "4, top first"
    lines = texts(content)
    assert "constant" in lines[0]
    assert lines[0].endswith("-1")
    assert "%scores  f32 2×4×32×32" in lines[1]
    assert "null" in lines[3]
    known = stepping.local_variables(replay, 60)
    assert known.right[0][0] == "10"
    assert "0.125" in row(known, "local:temperature")
    both = texts(stepping.both(replay, 60))
    assert any("locals of attention" in line for line in both)


def test_what_torch_adds_to_a_resume_function_comes_after_the_users_variables(replay: View) -> None:
    state = state_of(replay)
    assert state is not None
    known = state.frame.locals
    known = {"__nested_resume_fns": next(iter(known.values())), **known}
    resumed = dataclasses.replace(state.frame, locals=known)
    state = dataclasses.replace(state, frames=(*state.frames[:-1], resumed))
    keys = [row.key for row in stepping.locals_of(replay, state, 60)]
    assert keys.index("local:__nested_resume_fns") == len(keys) - 1


def test_the_graph_says_what_the_call_will_add(replay: View) -> None:
    content = stepping.growing_graph(replay, 50)
    assert content.right[0][0] == "13 nodes  54 guards"
    assert texts(content)[-1].strip() == "▸ weights   this call will add it"
    assert content.start == "coming"


def test_what_is_not_recorded_yet_is_not_known() -> None:
    view = live()
    assert "not known yet" in texts(stepping.growing_graph(view, 50))[-1]
    assert "%scores" in texts(stepping.stack(view, 60))[1]
    assert "×" not in texts(stepping.stack(view, 60))[1]


def test_the_source_tints_the_columns_of_the_instruction(replay: View) -> None:
    content = source.stepped(replay, 100)
    here = next(one for one in content.rows if any(role == "here" for _, role in one.body))
    assert [words for words, role in here.body if role == "here"]
    tinted = "".join(words for words, role in here.body if role == "here")
    assert tinted == "torch.softmax(scores, dim=-1)"
    assert content.right[0][0] == ("attention ‹ forward  ·  attempt 2 (restarted at the break)")


def test_the_number_of_attempts_is_told_when_it_is_known(records: list[AnyRecord]) -> None:
    view = view_of([*records, FrameEnd(compile_id="0/0", status="compiled", seconds=1.0)])
    view.step = softmax(records)
    assert "attempt 2 of 2" in source.stepped(view, 100).right[0][0]
    first = next(record for record in records if isinstance(record, Step) and record.attempt == 0)
    view.step = first
    assert "attempt 1 of 2" in source.stepped(view, 100).right[0][0]


def test_columns_are_bytes_of_the_line(records: list[AnyRecord]) -> None:
    """`é` is two bytes: the tint does not slip."""
    place = softmax(records).location
    body = source._here(
        (("é = f(é)", "text"),),
        place.__class__(file="m.py", line=1, end_line=1, column=5, end_column=10),
        1,
        "é = f(é)",
    )
    assert [words for words, role in body if role == "here"] == ["f(é)"]


def test_guards_grow_with_the_instructions_that_installed_them(replay: View) -> None:
    lines = texts(stepping.growing_guards(replay, 50))
    assert "+1" in lines[0]
    assert "load_attr softmax" in lines[0]
    assert stepping.growing_guards(replay, 50).right[0][0] == "54, last first"


def test_guards_are_shown_before_their_record_is_there(replay: View) -> None:
    assert guard_list.content(replay, 50).right[0][0] == "54, last first"
    told = [*attention(), Guards(compile_id="0/0", guards=())]
    assert guard_list.content(view_of(told), 50).right[0][0] == "no guards"


def test_a_function_without_bytecode_says_so(records: list[AnyRecord]) -> None:
    view = view_of([record for record in records if type(record).__name__ != "Bytecode"])
    assert "has no bytecode of forward" in texts(bytecode.content(view, 60))[1]


def test_without_steps_it_says_how_to_record_them(block: View) -> None:
    for pane in (
        bytecode.content,
        stepping.stack,
        stepping.local_variables,
        stepping.growing_graph,
        stepping.growing_guards,
    ):
        assert "--record steps" in " ".join(texts(pane(block, 60)))
    block.live = True
    assert "has not run an instruction" in " ".join(texts(stepping.stack(block, 60)))


def test_names_are_data(records: list[AnyRecord]) -> None:
    """Escapes, markup and 10,000 characters in every text of a step."""
    evil = "\x1b[31m[bold]x[/nope]\u202e" + "n" * 10_000
    step = softmax(records)
    value = msgspec.structs.replace(step.pushed[0] if step.pushed else _value(), value=evil)
    place = msgspec.structs.replace(step.location, file=evil)
    bad = msgspec.structs.replace(
        step, function=evil, opcode=evil, argument=evil, location=place, ip=0,
        pushed=(value, msgspec.structs.replace(value, node=evil, kind=evil, source=evil)),
        set_locals={evil: value}, nodes=(evil,), renamed={evil: evil},
    )  # fmt: skip
    view = view_of([bad])
    view.compile_id = bad.compile_id
    for pane in (
        bytecode.content, stepping.stack, stepping.local_variables, stepping.both,
        stepping.growing_graph, stepping.growing_guards, source.stepped,
    ):  # fmt: skip
        content = pane(view, 60)
        shown = "".join(texts(content)) + content.name + content.subject
        assert shown.isprintable(), pane
        assert "".join(words for words, _ in content.right).isprintable()


def _value():  # type: ignore[no-untyped-def]
    from tcw.compiler.trace.records import StackValue

    return StackValue(kind="Constant")


def test_kinds_in_words() -> None:
    assert kind_words("UnspecializedBuiltinNNModule") == "module"
    assert kind_words("TorchInGraphFunction") == "torch function"
    assert kind_words("BuiltinVariable") == "builtin variable"
