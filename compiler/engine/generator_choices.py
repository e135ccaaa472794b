"""Connects the code generator's choices to the gate, which the generator itself does not know."""

from __future__ import annotations

from compiler.codegen.question import Ask, Question
from compiler.control.decisions import Decision, Detail, Gate


def asking(gate: Gate, graph: str) -> Ask | None:
    """Answers the questions about one graph's nests; None if all answers are the defaults.

    A choice without legal alternatives is not a decision, unless an override asks for one.
    """
    if gate.silent:
        return None

    def ask(question: Question) -> str:
        decision = Decision(
            graph,
            question.kind,
            question.names,
            question.default,
            question.choices,
            question.rule,
            question.reason,
            question.numbers,
            question.forbidden,
            (lambda: Detail(origins=question.origins, means=question.means)) if gate.asks else None,
        )
        if len(decision.legal()) < 2 and decision.id not in gate.overrides:
            return question.default
        return gate.decide(decision)

    return ask
