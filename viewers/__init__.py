"""A trace, as something that a person reads. Pure functions of a trace: no torch."""
