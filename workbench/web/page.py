"""The process behind one page of `tcw serve`: an ordinary verb that ends with its server."""

from __future__ import annotations

from tcw.workbench.worker.guardian import die_with


def run(argv: list[str]) -> None:
    """Run `tcw VERB …` as the child of a server: `SERVER_PID VERB …`.

    A killed server cannot end its pages, so the kernel does. The worker's guardian then ends what
    this process has started.
    """
    server, *words = argv
    die_with(int(server))
    from tcw.workbench.cli import run as run_verb

    run_verb(words)
