"""Python imports this at start-up where `tcw run` has put this folder first on PYTHONPATH.

It starts the recording (`tcw.start_up`), takes the folder off `sys.path`, and lets the program's
own `sitecustomize` run, if it has one. Standard library only: it runs in any Python.
"""

import os
import sys


def _begin() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(folder))  # tcw/, which this Python need not find
    try:
        if "tcw.start_up" not in sys.modules:
            from importlib.machinery import SourceFileLoader

            file = os.path.join(root, "start_up.py")
            sys.modules["tcw.start_up"] = module = type(sys)("tcw.start_up")
            module.__file__ = file
            SourceFileLoader("tcw.start_up", file).exec_module(module)
        sys.modules["tcw.start_up"].install()
    except Exception as error:  # such as a Python that is too old: the program runs all the same
        sys.stderr.write(f"tcw: not recorded: {type(error).__name__}: {error}\n")
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")  # the program's own
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


_begin()
