"""The code generator's own choices at the gate: it reads nests alone, and knows no gate."""

from __future__ import annotations

from compiler.codegen.question import Ask, Question
from compiler.control.decisions import Decision, Detail, Gate


def asking(gate: Gate, graph: str) -> Ask | None:
    """Who answers the questions about one graph's nests; None where the answers are the defaults.

    What has no legal alternative is no decision, but where an override wants one all the same.
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
