"""Fusion: value graph -> ordered loop nests and calls. `fuse.py` gives the stage on one screen."""
