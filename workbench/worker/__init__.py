"""The child process: loads the user's file, drives torch.compile, streams records.

`client.py` is the side of the front end (no torch), `guardian.py` sees to it that nothing is left
behind, `process.py` is the worker's main.
"""
