"""The amount of work, and the limits of the machine."""
