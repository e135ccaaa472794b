"""Commands and keys: controllers declare them, and one registry has them all.

The keyboard, the footer, the help and the palette read the registry. A key means the same
everywhere. `gg` is the one sequence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tcw.viewers.plain import spelled

CommandRun = Callable[[], Awaitable[None] | None]
Method = TypeVar("Method")
_DECLARED = "declared_command"


@dataclass(frozen=True)
class Declared:
    """A command as its method declares it."""

    words: str
    """Verb first; the palette's entry."""
    keys: tuple[str, ...]
    """Textual's names of keys."""
    shown: str
    """How the keys are written."""
    also: str
    """Further words that find it in the palette."""


@dataclass(frozen=True)
class ScreenCommand(Declared):
    """A command of a screen. `name` is that of its method."""

    name: str
    run: CommandRun


def command(words: str, *keys: str, shown: str = "", also: str = "") -> Callable[[Method], Method]:
    """Declare a controller's method as a command; `shown` is the first key if not given. A method
    that several commands call with their own argument is declared as a `partialmethod`."""
    declared = Declared(words, keys, shown or (keys[0] if keys else ""), also)

    def mark(method: Method) -> Method:
        setattr(method, _DECLARED, declared)
        return method

    return mark


class Commands:
    """The commands of a screen's controllers, in the order in which they are declared."""

    def __init__(self, spells_keys: bool = False) -> None:
        """`spells_keys`: see `tcw.viewers.kit.theme.Theme`."""
        self._spells_keys = spells_keys
        self.by_name: dict[str, ScreenCommand] = {}
        self.by_key: dict[str, ScreenCommand] = {}

    def register(self, controller: object) -> None:
        """Take in the commands of a controller.

        Raises ValueError for a name or a key that is taken.
        """
        for method_name, method in vars(type(controller)).items():
            declared = getattr(method, _DECLARED, None)
            if not isinstance(declared, Declared):
                continue
            name = method_name.rstrip("_")
            run: CommandRun = getattr(controller, method_name)
            shown = spelled(declared.shown) if self._spells_keys else declared.shown
            made = ScreenCommand(declared.words, declared.keys, shown, declared.also, name, run)
            taken = [name, *made.keys] if name in self.by_name else []
            taken += [key for key in made.keys if key in self.by_key]
            if taken:
                raise ValueError(f"{type(controller).__name__}.{name}: {taken} is taken")
            self.by_name[name] = made
            self.by_key.update(dict.fromkeys(made.keys, made))

    @property
    def all(self) -> tuple[ScreenCommand, ...]:
        return tuple(self.by_name.values())

    def keys(self, names: str) -> str:
        """How the keys of commands are written, with the blanks between them; a name that begins
        with `=` is a key of no command."""
        return " ".join(
            name[1:] if name.startswith("=") else self.by_name[name].shown if name else ""
            for name in names.split(" ")
        )
