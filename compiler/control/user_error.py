"""Errors that are the user's to put right."""

from __future__ import annotations

from tcw.compiler.trace.records import Location


class UserError(Exception):
    """Something about the user's file, input or request, said in one line."""

    def __init__(
        self,
        message: str,
        *,
        type: str = "",
        location: Location | None = None,
        hint: str = "",
        doing: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.type = type
        self.location = location
        self.hint = hint
        self.doing = doing
