"""How much memory a call takes."""
