"""Results of a check, with every outcome."""

from __future__ import annotations

from tcw.viewers.check.result import TargetResult
from tcw.viewers.summary.budget import FactChange, Tolerance
from tcw.viewers.summary.differences.alignment import MatchedLine
from tcw.viewers.summary.differences.effects import Effect

ROOT = "/home/me/project"
CAUSE = "block.py:25 is new: print(x | y)"


def every_outcome() -> list[TargetResult]:
    line = MatchedLine(f"{ROOT}/block.py", 25)
    broken = Effect("break", "bad", "a new graph break: print()", line, "block.py:25", cause=CAUSE)
    slower = Effect("kernel", "bad", "a new kernel: gelu", cause=CAUSE)
    return [
        TargetResult(
            "block",
            "block.py",
            "2.13",
            changes=(
                FactChange(
                    "break", "GB0059 in forward: print(x | y)", None, 1, "worse",
                    file=f"{ROOT}/block.py", line=25,
                ),
                FactChange("library", "addmm, 3 inputs", 4, 5, "different"),
                FactChange("", "kernels", 4, 6, "worse", tolerance=Tolerance(1)),
                FactChange(
                    "", "memory peak", 1 << 20, 1 << 21, "worse", "bytes", Tolerance(0, 0.01)
                ),
                FactChange("", "guards", 30, 33, "different", tolerance=Tolerance(advice=True)),
                FactChange("", "loop nests", 9, 8, "better"),
            ),
            facts=31,
            effects=(broken, slower),
            base="a1b2c3d",
            seconds=12.3,
        ),
        TargetResult("mlp", "models/mlp.py", "2.13", facts=20, seconds=4.0),
        TargetResult(
            "gpt",
            "models/gpt.py",
            "2.13",
            changes=(FactChange("fused", "softmax + add", "no", "yes", "better"),),
            facts=40,
            accepted_under="2.12",
            seconds=30.0,
        ),
        TargetResult("new one", "models/new.py", "2.13", new=True),
        TargetResult(
            "broken", "models/broken.py", "",
            failure="ImportError: no module 'timm'",
            failed_at=MatchedLine(f"{ROOT}/models/parts.py", 7),
        ),
        TargetResult("late", "models/late.py", "", interrupted=True),
    ]  # fmt: skip


def hostile(text: str) -> list[TargetResult]:
    """A result in which every text is this one."""
    line = MatchedLine(text, 3)
    return [
        TargetResult(
            text,
            text,
            text,
            changes=(
                FactChange("break", text, None, 1, "worse", file=text, line=2),
                FactChange("setting", text, text, text + "x", "different"),
            ),
            effects=(Effect("break", "bad", text, line, text, cause=text),),
            base=text,
            accepted_under=text,
        ),
        TargetResult(text, text, text, failure=text, failed_at=MatchedLine(text, 4)),
    ]
