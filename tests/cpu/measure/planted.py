"""Wrong kernels, planted: a C++ compiler that changes one constant on its way to the real one.

Both engines ask `CXX` for their compiler, in whichever process they run, so that nothing of theirs
is patched: what they generate and record is right, what runs is not.

    made = planted(tmp_path, r"0\\.125", "0.25")
    monkeypatch.setenv("CXX", made.compiler)
    ...record, in a worker of its own...
    assert made.times() > 0

Inductor reads `CXX` when it is imported; in a process that has it already, patch its configuration:
`torch._inductor.config.patch({"cpp.cxx": (None, made.compiler)})`. Start from empty caches:
kernels of a right build must not be found.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """#!{python}
import re, subprocess, sys, tempfile, os
arguments = sys.argv[1:]
if "--version" in arguments:
    print("planted {old} -> {new},", subprocess.run(["{real}", *arguments], text=True,
          capture_output=True).stdout, end="")
    sys.exit(0)
def changed(text):
    found, times = re.subn({pattern!r}, {new!r}, text, count=1)
    if times:
        with open({log!r}, "a") as log:
            log.write("1\\n")
    return found
given = None
with tempfile.TemporaryDirectory() as folder:
    for place, one in enumerate(arguments):
        if one == "-":
            given = changed(sys.stdin.read())
        elif one.endswith((".cpp", ".cc")) and os.path.exists(one):
            copy = os.path.join(folder, os.path.basename(one))
            with open(one) as source, open(copy, "w") as target:
                target.write(changed(source.read()))
            arguments[place] = copy
    sys.exit(subprocess.run(["{real}", *arguments], input=given, text=True).returncode)
"""


@dataclass(frozen=True)
class Planted:
    """A compiler that plants one error."""

    compiler: str
    """Path, for `CXX`."""
    log: Path

    def times(self) -> int:
        """In how many units the constant was changed so far."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def planted(folder: Path, old: str, new: str) -> Planted:
    """The compiler, in a folder. `old` is a regular expression of the constant as the engine writes
    it; the first one in each unit becomes `new`."""
    real = shutil.which("g++")
    assert real is not None
    script, log = folder / "planted-g++", folder / "planted.log"
    text = _SCRIPT.format(
        python=sys.executable, real=real, pattern=old, old=old, new=new, log=str(log)
    )
    script.write_text(text)
    script.chmod(0o755)
    return Planted(str(script), log)
