"""How long a call takes: rounds, their order, when they stop, and their noise."""
