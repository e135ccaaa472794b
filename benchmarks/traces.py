"""Synthetic traces for the front end's benchmarks: a large graph, and a large file.

    python benchmarks/traces.py FILE [megabytes]

Generates the same records every time. The mix is that of real recordings of large models: most
bytes are texts (graphs before and after passes, kernels, PTX), then steps, graphs and fusion pairs.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tcw.compiler.trace.records import (  # noqa: E402
    CallEnd,
    CallStart,
    End,
    FrameEnd,
    FrameStart,
    FusionGroup,
    FusionGroups,
    FusionRound,
    Graph,
    Kernel,
    KernelBinary,
    KernelLine,
    Location,
    LoopLine,
    Lowered,
    Node,
    PassChange,
    SchedulerNode,
    StackValue,
    Step,
    TensorMeta,
    Wrapper,
)
from tcw.compiler.trace.records.graph import GraphKind  # noqa: E402
from tcw.compiler.trace.writer import TraceWriter, write_whole  # noqa: E402
from tests.block_capture import FILE, LINES  # noqa: E402
from tests.block_trace import Builder, opening  # noqa: E402
from tests.decided import pair_test  # noqa: E402

LAYER = 25
"""Operations of one layer of the model."""
OPS = ("addmm", "mul", "add", "tanh", "bmm", "amax", "sub", "exp", "sum", "div", "rsqrt", "mean")
VALUE = TensorMeta(shape=(8, 512, 1024), dtype="float32", stride=(524288, 1024, 1), bytes=16777216)


def nodes_of(count: int, prefix: str = "", seed: int = 1) -> tuple[Node, ...]:
    """A model of `count` operations: layers with a residual each, weights, and one input."""
    draw = random.Random(seed)
    nodes = [Node(name="x", op="placeholder", target="L_x_", value=VALUE)]
    residual = last = "x"
    for index in range(count):
        layer, at = divmod(index, LAYER)
        inputs = [last]
        if at in (0, 12) and residual != last:
            inputs.append(residual)
        elif at > 3 and draw.random() < 0.3:
            inputs.append(nodes[-draw.randint(2, min(6, at))].name)
        op = OPS[draw.randrange(len(OPS))]
        if op == "addmm":
            weight = f"l_self_modules_layers_modules_{layer}_modules_fc{at}_parameters_weight_"
            target = weight[0].upper() + weight[1:]
            nodes.append(Node(name=weight, op="placeholder", target=target, value=VALUE))
            inputs.append(weight)
        name = f"{prefix}{op}_{index}"
        part = "attention" if at < 12 else "mlp"
        nodes.append(
            Node(
                name=name,
                op="call_function",
                target=f"aten.{op}.default",
                args=", ".join(inputs),
                inputs=tuple(dict.fromkeys(inputs)),
                value=VALUE,
                module=f"layers.{layer}.{part}",
                location=Location(file=FILE, line=15 + index % 14, function="forward"),
                origins=(name,),
            )
        )
        if at in (0, 12):
            residual = name
        last = name
    nodes.append(Node(name="output", op="output", target="output", inputs=(last,)))
    return tuple(nodes)


def loops_of(index: int) -> tuple[LoopLine, ...]:
    """The loop nest of an operation."""
    return (
        LoopLine(variable="i", size=4096),
        LoopLine(depth=1, result="one", operation="constant", arguments=("1", "torch.float32")),
        LoopLine(depth=1, operation="store", arguments=(f"buf{index}", "i", "one")),
    )


def large_graph(count: int) -> Graph:
    """One captured graph of `count` operations."""
    return Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes_of(count), ops=count)


def _text(draw: random.Random, size: int, line: str) -> str:
    lines = []
    total = 0
    while total < size:
        words = line.format(draw.randrange(10**6), draw.randrange(1000), draw.random())
        lines.append(words)
        total += len(words) + 1
    return "\n".join(lines) + "\n"


CPP = "        auto tmp{0} = at::vec::Vectorized<float>::loadu(in_ptr{1} + x0 + {2:.6f}f * tmp3);"
PTX = "        fma.rn.f32      %f{0}, %f{1}, 0f{1:08X}, {2:.9f}; // @line {1}"
PRINT = (
    "    %mul_{0} : [num_users={1}] = call_function[target=aten.mul.Tensor](args = (%x, {2:.6f}))"
)


class Large(Builder):
    """A recording of one large model."""

    def __init__(self) -> None:
        super().__init__()
        self.draw = random.Random(7)

    def graphs(self, cid: str, count: int) -> str:
        """Add the graphs of one compile; returns the id of the lowered one."""
        stages: tuple[tuple[str, GraphKind, str], ...] = (
            (cid, "captured", ""),
            (f"{cid}/inference", "inference", cid),
            (f"{cid}/inference/lowered", "lowered", f"{cid}/inference"),
        )
        nodes = nodes_of(count)
        for name, kind, parent in stages:
            self.add(
                Graph(id=name, kind=kind, compile_id=cid, nodes=nodes, parent=parent, ops=count)
            )
        return stages[-1][0]

    def lower(self, graph: str, count: int, first: int, texts: int) -> None:
        """Add scheduler nodes, pairs, groups and kernels: one group per four operations."""
        names = [node for node in nodes_of(count) if node.op == "call_function"]
        for index, node in enumerate(names):
            self.add(
                Lowered(graph=graph, node=node.name, target=node.target, ir="Pointwise",
                        operations=(f"op{index}",))
            )  # fmt: skip
            self.add(
                SchedulerNode(
                    graph=graph, name=f"op{index}", kind="pointwise", origins=(node.name,),
                    label=node.name.partition("_")[0], domain=(4096, 1024),
                    reads=(f"buf{index - 1}",), writes=(f"buf{index}",), read_bytes=1 << 24,
                    nest=loops_of(index),
                )
            )  # fmt: skip
        groups = [tuple(range(at, min(at + 4, count))) for at in range(0, count, 4)]
        number = 0
        for pass_ in (1, 2, 3):
            for index in range(count - 1):
                if index % 4 == 3 or pass_ == 1:
                    number += 1
                    fused = index % 4 != 3
                    self.add(
                        pair_test(
                            id=f"inductor/{graph}/fuse#{index}", graph=graph, round=pass_,
                            phase="screen", first=f"op{index}", second=f"op{index + 1}",
                            fused=fused, rule="" if fused else "no-shared-data",
                            reason="" if fused else "no shared data", shared_bytes=1 << 20,
                            score=(1.0, 2.0) if fused else (),
                        )
                    )  # fmt: skip
            self.add(FusionRound(graph=graph, round=pass_))
        made = tuple(
            FusionGroup(
                name="_".join(f"op{i}" for i in group), nodes=tuple(f"op{i}" for i in group),
                kind="pointwise", label=", ".join(names[i].name.partition("_")[0] for i in group),
            )
            for group in groups
        )  # fmt: skip
        self.add(FusionGroups(graph=graph, groups=made))
        for at, group in enumerate(groups):
            origins = tuple(names[i].name for i in group)
            lines = tuple(
                KernelLine(line=4 + 3 * i, nodes=(name,)) for i, name in enumerate(origins)
            )
            body = _text(self.draw, texts, CPP)
            self.add(
                Kernel(
                    id=f"k{first + at}", graph=graph, name=f"cpp_fused_{first + at}",
                    label=made[at].label, language="cpp", text=self.text(body),
                    nodes=made[at].nodes, origins=origins, lines=lines, loop_nests=1, step=at,
                )
            )  # fmt: skip

    def steps(self, cid: str, count: int) -> None:
        """Add Dynamo's instructions."""
        for index in range(count):
            self.add(
                Step(
                    compile_id=cid, attempt=0, step=index, depth=index % 3, function="forward",
                    location=Location(file=FILE, line=15 + index % 14, column=8, end_column=40),
                    ip=2 * index, opcode=("LOAD_FAST", "CALL", "STORE_FAST")[index % 3],
                    argument="x", popped=index % 3,
                    pushed=(StackValue(kind="Tensor", node=f"mul_{index}", source="L['x']"),),
                    set_locals={"h": StackValue(kind="Tensor", node=f"mul_{index}")},
                    guards=index // 20,
                ),
                0.0001,
            )  # fmt: skip


def large_trace(path: Path, megabytes: float, nodes: int = 5000) -> int:
    """Write a trace of about this size; returns its number of records."""
    out = Large()
    opening(out)
    out.add(CallStart(call=1))
    cid = "0/0"
    out.add(FrameStart(compile_id=cid, attempt=0, function="forward", call=1,
                       location=Location(file=FILE, line=15)))  # fmt: skip
    out.steps(cid, int(megabytes * 350))
    lowered = out.graphs(cid, nodes)
    out.lower(lowered, nodes, 0, int(megabytes * 200))
    for number in range(int(megabytes * 0.2)):
        before, after = (out.text(_text(out.draw, 500_000, PRINT)) for _ in range(2))
        out.add(
            PassChange(graph=f"{cid}/inference", name=f"pass_{number}",
                       before=before, after=after)
        )  # fmt: skip
    for number in range(int(megabytes * 0.6)):
        stages = {
            "ttir": out.text(_text(out.draw, 60_000, CPP)),
            "llir": out.text(_text(out.draw, 200_000, PTX)),
            "ptx": out.text(_text(out.draw, 120_000, PTX)),
        }
        out.add(
            KernelBinary(kernel=f"k{number}", arch="sm_90", configuration="XBLOCK=128", **stages)
        )
    out.add(Wrapper(graph=lowered, language="python", text=out.text(_text(out.draw, 10**6, CPP))))
    out.add(FrameEnd(compile_id=cid, status="compiled", seconds=40.0, ops=nodes))
    out.add(CallEnd(call=1, seconds=out.clock, compiled=(cid,)))
    out.add(End(status="ok", seconds=out.clock, exit_code=0))
    with path.open("wb") as stream:
        writer = TraceWriter(partial(write_whole, stream.fileno()))
        for record in out.records:
            writer.emit(record)
    return len(out.records)


def main() -> None:
    path = Path(sys.argv[1])
    megabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 100
    records = large_trace(path, megabytes)
    print(f"{path}: {records:,} records, {path.stat().st_size / 1e6:.1f} MB, {len(LINES)} lines")


if __name__ == "__main__":
    main()
