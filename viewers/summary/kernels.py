"""The generated kernels and library calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tcw.compiler.trace.records import Kernel, KernelBinary
from tcw.viewers.collected import grouped
from tcw.viewers.labels import KernelNames
from tcw.viewers.recording import Recording


@dataclass(frozen=True)
class KernelRow:
    """One kernel, with the columns of a kernel table."""

    kernel: Kernel
    name: str
    """As `KernelNames.name` has it."""
    lines: tuple[tuple[str, int], ...]
    """Distinct user lines (file, line), in file order."""
    text_lines: int
    binaries: tuple[KernelBinary, ...]
    """The binaries it was compiled to, per architecture; Triton only."""


@dataclass(frozen=True)
class KernelSummary:
    rows: tuple[KernelRow, ...]
    by_language: dict[str, int]
    """`cpp` -> 12, most first, without predicted kernels."""
    predicted: int
    """The same of predicted kernels."""

    @property
    def count(self) -> int:
        """Kernels that ran or would run here, without predicted ones."""
        return sum(self.by_language.values())


def loop_nests(kernels: Iterable[Kernel]) -> int | None:
    """Loop nests that run, in the generated code: one in a kernel that is called twice counts
    twice, a predicted one not at all. None if there are no kernels."""
    real = [kernel for kernel in kernels if not kernel.predicted]
    return sum(kernel.loop_nests * max(1, len(kernel.steps)) for kernel in real) if real else None


def kernel_lines(kernel: Kernel) -> tuple[tuple[str, int], ...]:
    """The user lines that a kernel comes from: (file, line), in file order."""
    places = (*kernel.locations, *(place for line in kernel.lines for place in line.locations))
    return tuple(sorted({(place.file, place.line) for place in places}))


def kernel_summary(recording: Recording) -> KernelSummary:
    binaries = grouped((binary.kernel, binary) for binary in recording.all(KernelBinary))
    names = KernelNames(recording)
    rows = [
        KernelRow(
            kernel=kernel,
            name=names.name(kernel),
            lines=kernel_lines(kernel),
            text_lines=len(recording.text(kernel.text).splitlines()),
            binaries=tuple(binaries.get(kernel.id, ())),
        )
        for kernel in recording.kernels.values()
    ]
    languages = Counter(row.kernel.language for row in rows if not row.kernel.predicted)
    return KernelSummary(
        rows=tuple(rows),
        by_language=dict(languages.most_common()),
        predicted=sum(row.kernel.predicted for row in rows),
    )
