"""What the command line's text and the panes are made of: spans, tables, bars."""
