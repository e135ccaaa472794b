"""A trace as one HTML file: the workbench's panes, to be read where nothing is installed.

`tour.py` visits the screens that a reader can reach and keeps what their panes show, `pool.py`
stores each row once, `document.py` writes the file. The browser side is `page.js`; it draws text
nodes only, so text from a trace is never markup.
"""

BEGIN = "<!doctype html><!-- tcw export -->"
"""The beginning of every page that tcw wrote."""
