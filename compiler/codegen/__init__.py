"""From fused loops to source text, one folder per target. Nothing here imports torch."""
