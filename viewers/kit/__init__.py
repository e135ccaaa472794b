"""What the text of the command line and the panes are both made of: spans, tables, bars."""
