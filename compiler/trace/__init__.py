"""Traces: the records of one recording, in order, in one file of JSON lines. No torch.

`records/` defines what can be recorded, `writer.py` appends, `reader.py` reads, `refs.py` names
things and `provenance.py` links them.
"""
