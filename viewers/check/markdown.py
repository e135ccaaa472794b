"""One comment for a pull request: summary first, details folded.

The first line is always the same, so that a bot can find its comment and update it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from viewers.check.result import OUTCOME_WORDS, TargetResult, accepting
from viewers.check.text import MOST, headline
from viewers.plain import plain_lines
from viewers.words import plural

MARKER = "<!-- tcw check -->"
MOST_CHARACTERS = 60_000
"""GitHub rejects a comment of more than 65,536."""


def markdown(results: Sequence[TargetResult]) -> str:
    failing = any(one.fails for one in results)
    lines = [MARKER, f"### {'❌' if failing else '✅'} tcw check: {escaped(headline(results))}", ""]
    told = [one for one in results if one.fails or one.changes]
    if told:
        lines += ["| target | | first | because |", "|---|---|---|---|"]
        lines += [_row(one) for one in told]
        lines.append("")
    for one in told:
        lines += _details(one)
    text = "\n".join(lines) + "\n"
    if len(text) > MOST_CHARACTERS:
        cut = text[:MOST_CHARACTERS].rpartition("\n<details>")[0]
        text = cut + "\n\nThe rest is left out: it is in the job's log.\n"
    return text


def _row(result: TargetResult) -> str:
    cells = (
        f"**{escaped(result.name)}**",
        OUTCOME_WORDS[result.outcome],
        escaped(result.first_words),
        code(result.cause).replace("|", "\\|"),
    )
    return f"| {' | '.join(cells)} |"


def _details(result: TargetResult) -> list[str]:
    if not result.changes and not result.effects:
        return []
    name = escaped(result.name)
    lines = ["<details>", f"<summary>{name}: {OUTCOME_WORDS[result.outcome]}</summary>", ""]
    for effect in result.effects[:MOST]:
        place = f"{code(effect.place)} " if effect.place else ""
        because = (
            f" — because {code(effect.cause)}" if effect.cause not in ("", result.cause) else ""
        )
        lines.append(f"- {place}{escaped(effect.words)}{because}")
    if len(result.effects) > MOST:
        lines.append(f"- {plural(len(result.effects) - MOST, 'effect')} more")
    if result.effects and result.changes:
        lines += ["", "Against the budget:", ""]
    for change in result.changes:
        note = {"better": " (better)", "different": "", "worse": " (worse)"}[change.standing]
        advice = ", advice only" if change.tolerance.advice else ""
        lines.append(f"- {escaped(change.words)}{note}{advice}")
    if result.outcome in ("better", "different", "worse", "new"):
        lines += ["", f"If intended: {code(accepting(result))}"]
    return [*lines, "", "</details>", ""]


_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~@&$]|^[-+]|://|\bwww\.|:(?=[\w+-]+:)")


def escaped(text: str) -> str:
    """User text as Markdown that renders as itself: no markup, no mention, no link, no picture."""
    plain = " ".join(plain_lines(text))
    return _SPECIAL.sub(lambda found: "".join(f"&#{ord(one)};" for one in found[0]), plain)


def code(text: str) -> str:
    """User text as a code span; "" for none."""
    plain = " ".join(plain_lines(text))
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {plain} {fence}" if longest else f"`{plain}`" if plain else ""
