"""Loop-invariant parts of expressions, extracted as separate values.

What does not vary along the lanes is hoisted merely by its place (`values`). What varies along the
lanes but not over rows (1 / sqrt(variance of a channel)) does not fit in a register. As a separate
value it can be computed once and held in a row buffer (`passes`).
"""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.codegen.cpp.nests.passes import INVARIANT
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.expressions import Expression, Local, Op
from tcw.compiler.loops.nest import Let, Nest, Statement


def with_invariants(nest: Nest) -> Nest:
    """The nest with separate `Let`s for heavy parts with fewer axes than their statement."""
    facts = Facts(nest)
    made: dict[Expression, Local] = {}
    statements: list[Statement] = []
    taken = set(facts.named)
    for statement in nest.statements:
        whole = facts.axes(statement.expression)

        def visit(
            part: Expression, whole: frozenset[int] = whole, statement: Statement = statement
        ) -> Expression:
            if not isinstance(part, Op):
                return part
            axes = facts.axes(part)
            if axes and axes < whole and facts.expression_weight(part) > INVARIANT:
                if part not in made:
                    name = f"{part.name}_invariant"
                    while name in taken:
                        name += "_"
                    taken.add(name)
                    made[part] = Local(name, part.dtype)
                    order = tuple(sorted(axes))
                    statements.append(Let(name, part.dtype, part, order, statement.origins))
                return made[part]
            args = tuple(visit(argument) for argument in part.args)
            if all(new is old for new, old in zip(args, part.args, strict=True)):
                return part
            return replace(part, args=args)

        expression = visit(statement.expression)
        if expression is not statement.expression:
            statement = replace(statement, expression=expression)
        statements.append(statement)
    return replace(nest, statements=tuple(statements)) if made else nest
