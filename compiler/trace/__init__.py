"""Traces: the records of one recording, in order, in one file of JSON lines. No torch.

`records/` says what can be recorded, `writer.py` appends, `reader.py` reads what is there,
`refs.py` names things and `provenance.py` links the names.
"""
