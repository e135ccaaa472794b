"""Time and numerics of the whole model, both sides measured in the same run."""
