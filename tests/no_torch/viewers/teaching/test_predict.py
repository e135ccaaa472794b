from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    FusionRound,
    Run,
    SchedulerNode,
    Settings,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.fusion import fusion_summary
from tcw.viewers.teaching.predict import (
    Guess,
    GuessedChoice,
    Question,
    Quiz,
    Truth,
    Truths,
    hint,
    lessons,
    question_of,
    summary,
    truth_of_asked,
)
from tests.block_trace import block_trace
from tests.decided import is_test, pair_test
from tests.no_torch.asking import ID, asked, operations, stopped


def truths(records: list[AnyRecord]) -> Truths:
    return Truths(Recording(records))


def pair(id: str, fused: bool, first: str = "op0", second: str = "op1", **more: object) -> Decided:
    fields: dict[str, object] = {"phase": "commit", "round": 1, **more}
    return pair_test(
        id=f"inductor/g/fuse/{id}", graph="g", first=first, second=second, fused=fused, **fields
    )  # type: ignore[arg-type]


def test_the_truth_is_what_the_list_of_pairs_says() -> None:
    records = block_trace()
    found = truths(records)
    asked = {question.id for question in found.askable()}
    for graph in fusion_summary(Recording(records)).graphs:
        for one in graph.pairs:
            if one.first == one.second:
                assert one.id not in asked
                continue
            truth = found.truth(one.id)
            said = {"fused": "fuse", "rejected": "apart"}.get(one.verdict)
            assert (truth.choice if truth else None) == said
            if truth is not None and truth.choice == "apart":
                assert truth.rule == one.rule


def test_a_question_stands_before_the_first_record_that_tells() -> None:
    records = block_trace()
    for question in truths(records).askable():
        told = records[: question.position]
        assert not any(is_test(r) and r.id == question.id for r in told)
        next_one = records[question.position]
        assert is_test(next_one)
        assert next_one.id == question.id


def test_a_pair_that_fused_elsewhere_is_not_asked() -> None:
    trace = Recording([pair("a", True), pair("b", True, "op1", "op2")])
    found = Truths(trace)
    fused = ("op1", "op2", "x")
    trace.feed([FusionRound(graph="g", round=1, fused=(fused,))])
    assert [question.id for question in found.askable()] == ["inductor/g/fuse/b"]


def test_a_veto_is_told_as_the_readers_own() -> None:
    decided = Decided(
        id="inductor/g/fuse/a",
        graph="g",
        kind="fuse",
        default="fuse",
        choice="apart",
        overridden=True,
        rule="yours",
    )
    truth = truths([pair("a", False, rule="yours"), decided]).truth("inductor/g/fuse/a")
    assert truth == Truth("apart", "yours", "", True)


def test_a_new_run_asks_anew() -> None:
    first, second = (Run(number=n, settings=Settings(file="m.py")) for n in (1, 2))
    found = truths([first, pair("a", False), second, pair("b", False)])
    assert [(one.id, one.position) for one in found.askable()] == [("inductor/g/fuse/b", 3)]


def test_a_driven_compile_knows_what_the_engine_is_about_to_do() -> None:
    one = asked()
    assert truth_of_asked(one) == Truth("fuse", "may-fuse", "B reads what A writes")
    assert truth_of_asked(asked(default="apart")).choice == "apart"
    assert question_of(one) == Question(ID, one.graph, "op9_op10_op11", "op12_op13")


ANSWERS = st.sampled_from(("fuse", "apart", ""))
TRUTHS = st.sampled_from((Truth("fuse"), Truth("apart", "between"), Truth("apart", "domain"), None))


@given(st.lists(st.tuples(ANSWERS, TRUTHS)))
def test_the_score(rounds: list[tuple[GuessedChoice, Truth | None]]) -> None:
    quiz = Quiz()
    assert quiz.answer("fuse", None) is None
    for number, (answer, truth) in enumerate(rounds):
        question = Question(str(number), "g", "a", "b")
        quiz.ask(question)
        quiz.hint = True
        guess = quiz.answer(answer, truth)
        assert guess == Guess(question, answer, truth)
        assert quiz.question is None
    known = [(answer, truth) for answer, truth in rounds if answer and truth]
    right = sum(answer == truth.choice for answer, truth in known)
    assert (quiz.right, quiz.scored, len(quiz.missed)) == (right, len(known), len(known) - right)
    assert sum(len(guesses) for _, guesses in lessons(quiz.missed)) == len(quiz.missed)
    skipped = sum(not answer for answer, _ in rounds)
    if known and skipped:
        assert summary(quiz) == f"{right} of {len(known)} right, {skipped} skipped"


def fused(*names: str) -> FusionRound:
    done = tuple((f"{name}.a", f"{name}.b", "x") for name in names)
    return FusionRound(graph="g", round=1, fused=done)


def answers(quiz: Quiz, known: Truths) -> list[str]:
    """Ids of what is asked about a recorded trace, to the end."""
    found = []
    while (question := quiz.next(known)) is not None:
        quiz.ask(question)
        quiz.answer("apart", known.truth(question.id))
        found.append(question.id.rpartition("/")[2])
    return found


def test_a_quiz_leaves_out_what_is_dull() -> None:
    """Pairs with nothing to share, and more of one answer than the other can make up for."""
    records: list[AnyRecord] = [pair(f"n{i}", False, rule="no-shared-data") for i in range(9)]
    records += [pair(f"a{i}", False, rule="between") for i in range(9)]
    records += [pair("f0", True, "f0.a", "f0.b"), pair("a9", False, rule="between")]
    known = truths([*records, fused("f0")])
    assert answers(Quiz(), known) == ["a0", "a1", "a2", "f0", "a9"]
    assert len(answers(Quiz(most=0), known)) == 20
    assert answers(Quiz(most=2), known) == ["a0", "a1"]


def test_a_guess_learns_the_truth_later() -> None:
    quiz = Quiz()
    quiz.ask(Question("inductor/g/fuse/a", "g", "op0", "op1"))
    quiz.answer("fuse", None)
    assert quiz.scored == 0
    quiz.learn(truths([pair("a", False, rule="between")]))
    assert quiz.missed[0].truth == Truth("apart", "between")


def test_a_hint_tells_what_both_sides_show_and_not_the_rule() -> None:
    known = {node.name: node for node in operations(stopped())}
    sides = [
        [known[name] for name in names] for names in (("op9", "op10", "op11"), ("op12", "op13"))
    ]
    words = hint(*sides)
    assert "both touch buf8" in words
    assert "B reads what A writes" in words
    assert "the same domain 4096×128" in words
    alone = SchedulerNode(
        graph="g", name="op0", kind="extern", origins=(), label="mm", reads=("a",), writes=("b",)
    )
    assert "no buffer in common" in hint([alone], sides[1])
