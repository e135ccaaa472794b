"""Plants wrong kernels: one constant is changed on its way to the C++ compiler, in any process.
What the engines generate and record is correct; what runs is not.

    made = planted(tmp_path, r"0\\.125", "0.25")
    monkeypatch.setenv("CXX", made.compiler)          # our own engine
    monkeypatch.setenv("PYTHONPATH", made.inductor)   # Inductor
    ...record, in a separate worker...
    assert made.times() > 0

Our own engine takes its compiler from `CXX`; nothing of the engine is patched. Inductor uses
precompiled headers, which a wrapper around the compiler would break, so there each new Python
process finds a `sitecustomize` that changes the text of a kernel before it is passed on. Start from
empty caches: kernels of a correct build must not be found.
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


_SITE = """
import importlib.util, re, sys
MODULE = "torch._inductor.async_compile"


class Plant:
    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            plant(module.AsyncCompile)

        spec.loader.exec_module = exec_module
        return spec


def plant(kind):
    original = kind.cpp_pybinding

    def cpp_pybinding(self, argtypes, source_code, *args, **kwargs):
        text, times = re.subn({pattern!r}, {new!r}, source_code, count=1)
        if times:
            with open({log!r}, "a") as log:
                log.write("1\\n")
        return original(self, argtypes, text, *args, **kwargs)

    kind.cpp_pybinding = cpp_pybinding


sys.meta_path.insert(0, Plant())
"""


@dataclass(frozen=True)
class Planted:
    """The means to plant one error."""

    compiler: str
    """Path, for `CXX`."""
    inductor: str
    """Folder, the first of `PYTHONPATH`."""
    log: Path

    def times(self) -> int:
        """The number of units in which the constant has been changed."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def planted(folder: Path, old: str, new: str) -> Planted:
    """Prepare both ways in a folder. `old` is a regular expression for the constant as the engine
    writes it; the first match in each unit (Inductor's: in each kernel) becomes `new`."""
    real = shutil.which("g++")
    assert real is not None
    script, log, site = folder / "planted-g++", folder / "planted.log", folder / "planted-site"
    text = _SCRIPT.format(
        python=sys.executable, real=real, pattern=old, old=old, new=new, log=str(log)
    )
    script.write_text(text)
    script.chmod(0o755)
    site.mkdir()
    text = _SITE.format(pattern=old, new=new, log=str(log))
    (site / "sitecustomize.py").write_text(text)
    return Planted(str(script), str(site), log)
