"""Reports as Markdown, for a comment or an issue on GitHub, or a chat: summary first, details
folded."""

MARKER = "<!-- tcw explain -->"
"""The first line of the report of a recording."""
