"""Views of a trace for people and programs. Pure functions of a trace, without torch."""
