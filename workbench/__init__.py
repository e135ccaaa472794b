"""The program that the user runs: the commands, the worker process, the terminal workbench."""

import os

DOOR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
"""What our child processes start from, in any Python: tcw/__main__.py."""
