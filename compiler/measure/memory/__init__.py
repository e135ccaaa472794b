"""The memory that a call needs."""
