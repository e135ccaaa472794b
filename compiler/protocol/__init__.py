"""What the front end and a recording say to each other: pure data and words, no torch.

Decisions and their ids, the commands of a driven compile and where it stops, overrides, settings
and edits. Viewers import this and `tcw.compiler.trace`, and nothing else of the compiler.
"""
