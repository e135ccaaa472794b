"""Two runs of one model, timed against each other in the process that has both."""
