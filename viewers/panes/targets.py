"""What a row of a pane represents, and where opening it leads.

A target is data: `viewers/navigator.py` follows those that change what is shown, the screen
those that ask for something to be done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from compiler.trace.refs import Ref


class _Target:
    """Its text is the name of its row: one name per target."""

    __slots__: tuple[str, ...] = ()
    word: ClassVar[str]

    def __str__(self) -> str:
        return ":".join([self.word, *(str(getattr(self, name)) for name in self.__slots__)])


@dataclass(frozen=True, slots=True)
class Fold(_Target):
    """Unfold or fold what has this key."""

    word: ClassVar[str] = "fold"
    key: str


@dataclass(frozen=True, slots=True)
class ToView(_Target):
    """An arrangement."""

    word: ClassVar[str] = "view"
    arrangement: str


@dataclass(frozen=True, slots=True)
class ToThing(_Target):
    """What a ref names: a line, a node, loops, a kernel."""

    word: ClassVar[str] = "thing"
    ref: Ref


@dataclass(frozen=True, slots=True)
class ToCompile(_Target):
    word: ClassVar[str] = "compile"
    id: str


@dataclass(frozen=True, slots=True)
class ToStage(_Target):
    """A stage of a compile, as the spine lists them."""

    word: ClassVar[str] = "stage"
    compile_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToFrame(_Target):
    """The compile that a recompile of a frame replaced."""

    word: ClassVar[str] = "frame"
    compile_id: str


@dataclass(frozen=True, slots=True)
class ToFinding(_Target):
    word: ClassVar[str] = "finding"
    index: int


@dataclass(frozen=True, slots=True)
class ToCause(_Target):
    """A cause of recompiling."""

    word: ClassVar[str] = "cause"
    index: int


@dataclass(frozen=True, slots=True)
class ToBreak(_Target):
    """A graph break, by its place and torch's id of its kind."""

    word: ClassVar[str] = "break"
    file: str
    line: int
    gb: str


@dataclass(frozen=True, slots=True)
class ToKernel(_Target):
    word: ClassVar[str] = "kernel"
    id: str


@dataclass(frozen=True, slots=True)
class ToPair(_Target):
    """A fusion decision, by its id."""

    word: ClassVar[str] = "pair"
    id: str


@dataclass(frozen=True, slots=True)
class ToDecision(_Target):
    """A decision of another kind, by its id."""

    word: ClassVar[str] = "decision"
    id: str


@dataclass(frozen=True, slots=True)
class ToRegion(_Target):
    """A region of the profile, by its key."""

    word: ClassVar[str] = "region"
    key: str


@dataclass(frozen=True, slots=True)
class ToBuffer(_Target):
    word: ClassVar[str] = "buffer"
    name: str


@dataclass(frozen=True, slots=True)
class ToLineup(_Target):
    """Lines of two engines, or of two runs, side by side."""

    word: ClassVar[str] = "lineup"
    index: int


@dataclass(frozen=True, slots=True)
class ToBlock(_Target):
    """A block of the picture of a graph, by its key."""

    word: ClassVar[str] = "block"
    key: str


@dataclass(frozen=True, slots=True)
class ToEffect(_Target):
    """One thing that two recordings do differently, by its place in the list."""

    word: ClassVar[str] = "effect"
    index: int


@dataclass(frozen=True, slots=True)
class ToProcess(_Target):
    """Another recording of the same folder: a group of processes that did the same, by its number.
    The logs that were only skimmed come after the groups."""

    word: ClassVar[str] = "process"
    number: int


@dataclass(frozen=True, slots=True)
class ToNote(_Target):
    """The thing that a note is on."""

    word: ClassVar[str] = "note"
    on: str


@dataclass(frozen=True, slots=True)
class ToBreakpoint(_Target):
    """Opened, it is switched on or off."""

    word: ClassVar[str] = "breakpoint"
    number: int


@dataclass(frozen=True, slots=True)
class ToOverride(_Target):
    word: ClassVar[str] = "override"
    id: str


@dataclass(frozen=True, slots=True)
class ToSetting(_Target):
    """Compile again with a setting's choice."""

    word: ClassVar[str] = "setting"
    name: str
    index: int


@dataclass(frozen=True, slots=True)
class ToInputs(_Target):
    """Compile again with inputs that the reader types."""

    word: ClassVar[str] = "inputs"


@dataclass(frozen=True, slots=True)
class ToSuggestion(_Target):
    """Compile again with what a cause of the profile suggests, both by their places."""

    word: ClassVar[str] = "suggestion"
    cause: int
    place: int


RowTarget = (
    Fold
    | ToView
    | ToThing
    | ToCompile
    | ToStage
    | ToFrame
    | ToFinding
    | ToCause
    | ToBreak
    | ToKernel
    | ToPair
    | ToDecision
    | ToRegion
    | ToBuffer
    | ToLineup
    | ToBlock
    | ToEffect
    | ToProcess
    | ToNote
    | ToBreakpoint
    | ToOverride
    | ToSetting
    | ToInputs
    | ToSuggestion
)
