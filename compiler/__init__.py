"""PyTorch's compiler, recorded, and ours, stage by stage. Imports neither UI nor CLI."""
