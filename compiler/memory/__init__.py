"""Memory planning: lifetimes of values, reuse of memory, in-place writes."""
