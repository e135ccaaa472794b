"""What a row of a pane represents, and where opening it leads.

A target is data: `viewers/navigator.py` follows those that change what is shown, the screen
those that ask for something to be done.
"""

from __future__ import annotations

from typing import dataclass_transform

from msgspec import Struct

from tcw.compiler.trace.refs import Ref


@dataclass_transform(frozen_default=True)
class RowTarget(Struct, frozen=True):
    """Its text is the name of its row: one name per target, such as `lineup:3`."""

    def __str__(self) -> str:
        word = type(self).__name__.removeprefix("To").lower()
        return ":".join([word, *(str(getattr(self, name)) for name in self.__struct_fields__)])


class OpenTarget(RowTarget):
    """A target to which opening its row leads, unless the row says otherwise."""


class Fold(RowTarget):
    """Unfold or fold the thing with this key."""

    key: str


class ToView(RowTarget):
    """An arrangement."""

    arrangement: str


class ToThing(RowTarget):
    """What a ref names: a line, a node, loops, a kernel."""

    ref: Ref


class ToCompile(OpenTarget):
    id: str


class ToStage(OpenTarget):
    """A stage of a compile, as the spine lists them."""

    compile_id: str
    name: str


class ToFrame(RowTarget):
    """The compile that a recompile of a frame replaced."""

    compile_id: str


class ToFinding(OpenTarget):
    index: int


class ToCause(OpenTarget):
    """A cause of recompiling."""

    index: int


class ToBreak(RowTarget):
    """A graph break, by its place and torch's id of its kind."""

    file: str
    line: int
    gb: str


class ToKernel(OpenTarget):
    id: str


class ToPair(RowTarget):
    """A fusion decision, by its id."""

    id: str


class ToDecision(RowTarget):
    """A decision of another kind, by its id."""

    id: str


class ToRegion(OpenTarget):
    """A region of the profile, by its key."""

    key: str


class ToBuffer(RowTarget):
    name: str


class ToLineup(RowTarget):
    """Lines of two engines, or of two runs, side by side."""

    index: int


class ToBlock(RowTarget):
    """A block of the picture of a graph, by its key."""

    key: str


class ToEffect(RowTarget):
    """One thing that two recordings do differently, by its place in the list."""

    index: int


class ToProcess(OpenTarget):
    """Another recording of the same folder: a group of processes that did the same, by its number.
    The logs that were only skimmed come after the groups."""

    number: int


class ToNote(RowTarget):
    """The thing that a note is on."""

    on: str


class ToBreakpoint(OpenTarget):
    """Opened, it is switched on or off."""

    number: int


class ToOverride(RowTarget):
    id: str


class ToSetting(OpenTarget):
    """Compile again with a setting's choice."""

    name: str
    index: int


class ToInputs(OpenTarget):
    """Compile again with inputs that the reader types."""


class ToSuggestion(OpenTarget):
    """Compile again with what a cause of the profile suggests, both by their places."""

    cause: int
    place: int
