"""Small edits of the user's source, tried on an in-memory copy: each line keeps its number.

No torch here: the front end proposes edits and shows their diff, the worker runs the edited
text."""

from tcw.compiler.protocol.edits.change import changed, changes_by_file
from tcw.compiler.protocol.edits.edit import Edit, EditError, by_file, read_edit, relative
from tcw.compiler.protocol.edits.kinds import KINDS, edited
from tcw.compiler.protocol.edits.patch import applied, diff

__all__ = [
    "KINDS",
    "Edit",
    "EditError",
    "applied",
    "by_file",
    "changed",
    "changes_by_file",
    "diff",
    "edited",
    "read_edit",
    "relative",
]
