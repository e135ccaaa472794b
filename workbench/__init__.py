"""The program that the user runs: the commands, the worker process, the terminal workbench."""
