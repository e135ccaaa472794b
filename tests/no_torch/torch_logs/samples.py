"""Two logs that torch 2.13 and 2.11 wrote of one small training: a graph break, a size and a number
that change, a backward. Paths were replaced, and payloads that nothing reads left out."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
VERSIONS = ("2.11", "2.13")


@cache
def log(version: str) -> bytes:
    return gzip.decompress((FOLDER / f"torch-{version}.log.gz").read_bytes())


def entry(metadata: str, payload: str | None = None, pid: int = 7) -> str:
    """One entry, as torch writes it; `metadata` without its braces."""
    if payload is not None:
        checksum = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
        metadata += f', "has_payload": "{checksum}"'
    head = f"V1124 12:00:00.000000 {pid} torch/_dynamo/x.py:1] {{{metadata}}}\n"
    return head + "".join(
        f"\t{row}\n" for row in (payload or "").split("\n") if payload is not None
    )
