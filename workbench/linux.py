"""Recording needs Linux: a worker, its guardian and their clocks use what no other system has.

Reading does not: `tcw open`, `explain LOG`, `diff` of two traces and `export`.
"""

from __future__ import annotations

import sys


def why_not() -> str:
    """Why nothing can be recorded on this system; "" if it can."""
    system = str(sys.platform)
    return "" if system == "linux" else f"recording needs Linux, and this is {system}"
