"""GPUs that are not there: their properties, a graph as it would be on one, NVIDIA's tools."""
