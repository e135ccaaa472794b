"""What the text of the command line, the panes and pages show alike: drawn once, as lines."""
