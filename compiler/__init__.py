"""The compiler: recorded (PyTorch's own) and, stage by stage, ours. Imports neither UI nor CLI."""
