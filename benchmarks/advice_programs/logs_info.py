"""A logger at level info, which nothing shows.

gb: logging.Logger method not supported for non-export cases
cause: break at `log.info("batch of %d", x.shape[0])`
fix: set torch._dynamo.config.ignore_logging_functions.add(log.info)
"""

import logging

import torch

log = logging.getLogger("training")


def model(x):
    x = x.cos()
    log.info("batch of %d", x.shape[0])
    return x.sum(-1) * 2


example_inputs = (torch.randn(3, 8),)
