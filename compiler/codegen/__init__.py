"""From fused loops to source text: a folder for each target. Nothing here imports torch."""
