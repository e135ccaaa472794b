"""The `tcw` command: `tcw …`, `python -m tcw …`, or this file by its path.

Our child processes start by the path, in whichever Python records, which need not have tcw
installed. Then `tcw` is the folder of this file, whatever else that Python finds first.
"""

from __future__ import annotations

import sys

if not __package__:
    import os

    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(HERE), *(entry for entry in sys.path if entry != HERE)]

    del sys.path[0]


def main() -> None:
    """The command line; `--worker` and `--page` are our own child processes."""
    match sys.argv[1:]:
        case ["--worker", *words]:
            from tcw.workbench.worker.process import run

            run(words)
        case ["--page", server, *words]:
            # A killed server cannot end its pages, so the kernel does. The worker's guardian then
            # ends what this process has started.
            from tcw.workbench.worker.guardian import die_with

            die_with(int(server))
            from tcw.workbench import cli

            cli.run(words)
        case _:
            from tcw.workbench import cli

            cli.run()


if __name__ == "__main__":
    main()
