"""CPU seconds of processes below this one."""

from __future__ import annotations

import subprocess
import sys

from tcw.workbench.worker.guardian import children_cpu_seconds


def test_cpu_seconds_count_children_that_still_live() -> None:
    program = (
        "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    )
    before = children_cpu_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert children_cpu_seconds() - before >= 0.25
    child.communicate(b"\n")
