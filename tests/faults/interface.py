"""Faults in edits, viewers, and the workbench."""

from __future__ import annotations

from tests.faults.fault import Fault

FAULTS = (
    Fault(
        "a statement is moved past a new value of what it reads",
        "compiler/protocol/edits/kinds.py",
        "    if read & bound:\n",
        "    if read & bound & set():\n",
        ("tests/no_torch/protocol/edits/test_kinds.py",),
    ),
    Fault(
        "a buffer is dead at the step that reads it last",
        "viewers/summary/memory_plans.py",
        "min(buffer.last + 1, steps)",
        "min(buffer.last, steps)",
        ("tests/no_torch/viewers/panes/test_memory.py",),
    ),
    Fault(
        "names of blocks are markup of a label",
        "viewers/drawing/export.py",
        "escaped(line.strip())",
        "line.strip()",
        ("tests/no_torch/viewers/drawing/test_export.py",),
    ),
    Fault(
        "bytes of a recorded column count as characters",
        "viewers/panes/source.py",
        """plain_column(line, len(data[:column].decode("utf-8", "ignore")))""",
        "plain_column(line, column)",
        (
            "tests/no_torch/viewers/panes/test_source.py",
            "tests/no_torch/viewers/panes/test_stepping.py",
        ),
    ),
    Fault(
        "y runs a stranger's code before all of it was seen",
        "workbench/tui/overlay.py",
        "if self.ready and self.seen:",
        "if self.ready:",
        ("tests/no_torch/tui/test_strangers.py",),
    ),
    Fault(
        "what is new counts as gone, and what is gone as new",
        "viewers/text/diff.py",
        '"+" if not change.before else "-" if not change.after else "~"',
        '"-" if not change.before else "+" if not change.after else "~"',
        ("tests/no_torch/viewers/test_difference.py",),
    ),
    Fault(
        "orphans of the worker outlive it",
        "workbench/worker/guardian.py",
        "_prctl(_PR_SET_CHILD_SUBREAPER, 1)",
        "_prctl(_PR_SET_CHILD_SUBREAPER, 0)",
        ("tests/no_torch/worker/test_guardian.py",),
    ),
    Fault(
        "a tie takes only the larger difference's noise into account",
        "viewers/summary/profile/rows.py",
        "hypot(first.noise, difference.noise)",
        "first.noise",
        ("tests/no_torch/viewers/profile/test_ranking.py",),
    ),
    Fault(
        "pairs predicted for a GPU are in the sums",
        "viewers/summary/fusion.py",
        "real = [fusion for fusion in graphs if not fusion.predicted]",
        "real = graphs",
        ("tests/no_torch/viewers/test_summary.py",),
    ),
    Fault(
        "a recompile is explained by the first entry, not by the nearest",
        "viewers/summary/recompiles.py",
        "key=lambda guard: self.differing(guard.entry, record.call),",
        "key=lambda guard: 0,",
        ("tests/no_torch/viewers/test_recompile_causes.py",),
    ),
    Fault(
        "a choice that goes back to the default stays an override",
        "workbench/tui/deciding.py",
        "if choice != decision.default:",
        "if True:",
        ("tests/no_torch/tui/test_deciding.py", "tests/no_torch/tui/test_compile_again.py"),
    ),
    Fault(
        "other modules are found before the user's",
        "workbench/worker/session.py",
        "sys.path.insert(0, root)",
        "sys.path.append(root)",
        ("tests/cpu/worker/test_hand_over.py",),
    ),
)
