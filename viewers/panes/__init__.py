"""The panes of the terminal workbench as data: a recording and a place in it, to rows of text.

One file a pane, each a pure function; nothing here knows a widget. `rows.py` is the vocabulary,
`view.py` says where the reader is.
"""
