"""What to do about a graph break. No torch here: the table needs only torch's words and a line."""

from compiler.capture.advice.broken import Broken
from compiler.capture.advice.table import advise

__all__ = ["Broken", "advise"]
