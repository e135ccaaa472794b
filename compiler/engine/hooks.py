"""What our engine uses of torch beyond its public functions, hook by hook."""

from __future__ import annotations

from tcw.compiler.control.hooks import Hook
from tcw.compiler.engine import autograd_function, requirements, unread_texts
from tcw.compiler.engine import partition as maximum_flow
from tcw.compiler.graphs import drawn_numbers, lazy_modules
from tcw.compiler.lowering import kept
from tcw.compiler.rewrites import channels_last as convolution_library
from tcw.compiler.rewrites import foreach, repeated_pieces, resampling
from tcw.compiler.runtime import addresses, generator, operations, vector_functions, wrapper_helpers
from tcw.compiler.runtime.gpu import graph_replay as cuda_graphs

HOOKS: tuple[Hook, ...] = (
    requirements.HOOK,
    addresses.HOOK,
    vector_functions.HOOK,
    generator.HOOK,
    resampling.HOOK,
    repeated_pieces.HOOK,
    autograd_function.HOOK,
    convolution_library.HOOK,
    drawn_numbers.HOOK,
    foreach.HOOK,
    kept.HOOK,
    wrapper_helpers.HOOK,
    operations.HOOK,
    cuda_graphs.HOOK,
    lazy_modules.HOOK,
    maximum_flow.HOOK,
    unread_texts.HOOK,
)
