"""Reports as Markdown, for a comment or an issue on GitHub, or a chat: summary first, details
folded."""

MARKER = "<!-- tcw explain -->"
"""The first line of the report of a recording."""
PROFILE_MARKER = "<!-- tcw profile -->"
RUN_MARKER = "<!-- tcw run -->"
"""Of a folder of recordings, one a process."""
MARKERS = (MARKER, PROFILE_MARKER, RUN_MARKER)
