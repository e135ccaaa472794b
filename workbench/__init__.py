"""The program that the user runs: commands, the worker process, the terminal workbench."""
