"""Units that launch kernels on a GPU: their binaries, and the driver that loads them."""
