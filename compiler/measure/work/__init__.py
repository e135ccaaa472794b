"""How much work there is, and what the machine can do at most."""
