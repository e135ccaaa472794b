"""Time and numerics of the whole model, both sides in the same run."""
