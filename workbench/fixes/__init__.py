"""Fixes: each piece of advice as a change of what runs, tried before it is shown."""
