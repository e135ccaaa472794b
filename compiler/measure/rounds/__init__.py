"""How long a call takes: rounds, their order, when they end, and their noise."""
