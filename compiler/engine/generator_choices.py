"""Connects the code generator's choices to the gate, which the generator itself does not know."""

from __future__ import annotations

from tcw.compiler.codegen.choices import Ask
from tcw.compiler.control.gate import Gate
from tcw.compiler.protocol.decision import Decision


def asking(gate: Gate) -> Ask | None:
    """Answers the decisions about nests; None if all answers are the defaults.

    A choice without legal alternatives is not a decision, unless an override asks for one.
    """
    if gate.silent:
        return None

    def ask(decision: Decision) -> str:
        if len(decision.legal()) < 2 and decision.id not in gate.overrides:
            return decision.default
        return gate.decide(decision)

    return ask
