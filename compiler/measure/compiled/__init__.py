"""The graphs and kernels that an engine compiled, each callable by itself."""
