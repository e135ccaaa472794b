"""python ranks.py KIND BACKEND [FOLDER | cuda]: a rank of a training loop, in which rank 1 does
something else, on CPUs (gloo) or GPUs (NCCL). Run by torchrun; the tests of ranks look for the
lines that are marked."""

from __future__ import annotations

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

KIND, BACKEND, *REST = sys.argv[1:]
DEVICE = "cuda" if "cuda" in REST else "cpu"
if DEVICE == "cuda":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
group = "nccl" if DEVICE == "cuda" else "gloo"
dist.init_process_group(group, timeout=datetime.timedelta(seconds=600 if KIND == "hang" else 20))
rank = dist.get_rank()
other = rank == 1
torch.manual_seed(0)
torch.set_num_threads(1)
if KIND == "cache":
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(REST[0], f"rank{rank}")


class Block(torch.nn.Linear):
    """A part that FSDP shards, and that is compiled by itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).cos()  # the block


class Net(torch.nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        layer = Block if KIND.startswith("fsdp") else torch.nn.Linear
        self.layers = torch.nn.ModuleList(layer(8, 8) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))  # the layers
        if KIND == "branch" and rank == 1:  # the branch
            x = torch.sigmoid(x)  # the operation
        if KIND == "in the graph" and rank == 1:
            dist.all_reduce(x)  # the one in the graph
        return x.sum()


def measured(loss: torch.Tensor) -> torch.Tensor:
    if KIND == "outside" and rank == 1:
        dist.all_reduce(loss.detach().expand(3).clone())  # the one outside
    if KIND == "hang" and rank == 1:
        time.sleep(600)
    return loss


def wrapped(net: Net) -> torch.nn.Module:
    if KIND == "tensor parallel":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            RowwiseParallel,
            parallelize_module,
        )

        mesh = init_device_mesh(DEVICE, (dist.get_world_size(),))
        plan = {"layers.0": ColwiseParallel(), "layers.1": RowwiseParallel()}
        return parallelize_module(net, mesh, plan)
    if KIND in ("fsdp", "fsdp size"):
        from torch.distributed.fsdp import fully_shard

        for layer in net.layers:
            layer.compile(backend=BACKEND)
            fully_shard(layer)
        return fully_shard(net)
    net.compile(backend=BACKEND)
    if KIND in ("layer", "outside", "in the graph", "cache"):
        return net
    return torch.nn.parallel.DistributedDataParallel(net)


net = Net(3 if KIND == "layer" and other else 2).to(DEVICE)
model = wrapped(net)
if KIND == "tensor parallel":
    model.compile(backend=BACKEND)
for step in range(3):
    rows = 6 if other and (KIND in ("size", "fsdp size") or (KIND == "resize" and step == 2)) else 4
    measured(model(torch.randn(rows, 8, device=DEVICE))).backward()
if KIND == "same":
    dist.all_reduce(torch.ones(2, device=DEVICE))
dist.barrier()
dist.destroy_process_group()
