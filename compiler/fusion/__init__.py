"""Fusion: value graph -> loop nests and calls in order. `fuse.py` is the stage on one screen."""
