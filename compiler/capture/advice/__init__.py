"""What to do about a graph break. Without torch: it needs only torch's message and the source."""

from tcw.compiler.capture.advice.broken import Broken
from tcw.compiler.capture.advice.table import advise

__all__ = ["Broken", "advise"]
