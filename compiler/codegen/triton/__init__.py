"""Loop nests as Triton kernels, and the C++ functions that launch them.

A nest becomes one or more kernels (`split_nest`): a kernel has one kind of row. Each is a tile over
two dimensions, `x` for what is kept and `r` for what is reduced, whose sizes `tiles` chooses.
`kernel` writes the text, and `triton_unit` the host's side, with all of a graph together.
"""
