"""What an engine compiled: its graphs and kernels, each callable by itself."""
