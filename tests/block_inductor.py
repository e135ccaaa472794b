"""Inductor's half of the synthetic trace: graphs, loops, fusion, memory and kernels of a graph."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from compiler.trace.records import (
    Buffer,
    FusionGroup,
    FusionGroups,
    FusionPair,
    FusionRound,
    Graph,
    Kernel,
    KernelBinary,
    KernelLine,
    Location,
    Lowered,
    MemoryPlan,
    Node,
    SchedulerNode,
    Wrapper,
)

RULES = {
    "intermediate nodes between node1 & node2": "between",
    "no shared data": "no-shared-data",
    None: "unstated",
}
ROUND_STARTS = {
    ("op0", "op2"),
    ("op0_op1_op2_op3_op4", "op19"),
    ("op0_op1_op2_op3_op4", "op5"),
}
LABELS = {
    "0/0/forward": {
        "op0": "mean", "op1": "mean / n", "op2": "variance", "op3": "rsqrt", "op4": "normalise",
        "op5": "addmm qkv", "op6": "q copy", "op7": "k copy", "op8": "bmm q@k", "op9": "amax",
        "op10": "amax", "op11": "any", "op12": "exp", "op13": "sum", "op14": "div",
        "op15": "v copy", "op16": "bmm @v", "op17": "merge heads", "op18": "addmm proj",
        "op19": "add",
    },
    "1/0/forward": {
        "op0": "mean", "op1": "mean / n", "op2": "variance", "op3": "rsqrt", "op4": "normalise",
        "op5": "max abs", "op6": "gt",
    },
    "2/0/forward": {"op0": "addmm fc1", "op1": "gelu", "op2": "addmm fc2", "op3": "add"},
}  # fmt: skip
KERNELS: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {
    "0/0/forward": [
        ("cpp_fused_native_layer_norm_0", "layer norm", ("op0", "op1", "op2", "op3", "op4")),
        ("extern_kernels.addmm", "addmm qkv", ("op5",)),
        (
            "cpp_fused_clone_permute_select_transpose_view_1",
            "q k v copies",
            ("op6", "op7", "op15"),
        ),
        ("extern_kernels.bmm", "bmm q@k", ("op8",)),
        (
            "cpp_fused__softmax_abs_all_amax_eq_mul_ne_sub_view_2",
            "softmax",
            ("op9", "op10", "op11", "op12", "op13", "op14"),
        ),
        ("extern_kernels.bmm", "bmm @v", ("op16",)),
        ("cpp_fused_clone_transpose_view_3", "merge heads", ("op17",)),
        ("extern_kernels.addmm", "addmm proj", ("op18",)),
        ("cpp_fused_add_view_4", "add", ("op19",)),
    ],
    "1/0/forward": [
        (
            "cpp_fused_abs_gt_max_native_layer_norm_0",
            "layer norm, flag",
            ("op0", "op1", "op2", "op3", "op4", "op5", "op6"),
        ),
    ],
    "2/0/forward": [
        ("extern_kernels.addmm", "addmm fc1", ("op0",)),
        ("cpp_fused_gelu_view_0", "gelu", ("op1",)),
        ("extern_kernels.addmm", "addmm fc2", ("op2",)),
        ("cpp_fused_add_view_1", "add", ("op3",)),
    ],
}
SECTIONS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "cpp_fused_native_layer_norm_0": [
        (r"#pragma omp for", ("op0",)),
        (r"#pragma omp single", ("op1",)),
        (r"#pragma omp for", ("op2",)),
        (r"#pragma omp single", ("op3",)),
        (r"#pragma omp for", ("op4",)),
    ],
    "cpp_fused_clone_permute_select_transpose_view_1": [
        (r"#pragma omp for", ("op6",)),
        (r"#pragma omp for", ("op7",)),
        (r"#pragma omp for", ("op15",)),
    ],
    "cpp_fused__softmax_abs_all_amax_eq_mul_ne_sub_view_2": [
        (r"float tmp_acc0 = -std", ("op9", "op10", "op11")),
        (r"float tmp_acc0 = 0", ("op12",)),
        (r"tmp17.exp", ("op12", "op13")),
        (r"local_buffer_data_0 \+ static_cast<int64_t>\(x1\), ", ("op14",)),
    ],
    "cpp_fused_abs_gt_max_native_layer_norm_0": [
        (r"#pragma omp for", ("op0",)),
        (r"#pragma omp single", ("op1",)),
        (r"#pragma omp for", ("op2",)),
        (r"#pragma omp single", ("op3",)),
        (r"#pragma omp for", ("op4",)),
        (r"tmp_acc0_arr", ("op5",)),
    ],
}
"""From which line on the statements of a kernel compute which scheduler nodes."""

BUFFERS = {
    "0/0/forward": (
        ("buf0", 2048, 0, 0, "temporary", "", "mean"),
        ("buf1", 2048, 0, 8, "saved", "buf0", "mean"),
        ("buf3", 2048, 0, 8, "saved", "", "rsqrt"),
        ("buf4", 524288, 0, 8, "saved", "", "normalised"),
        ("buf5", 1572864, 1, 2, "temporary", "", "qkv"),
        ("buf6", 524288, 2, 8, "saved", "", "q"),
        ("buf7", 524288, 2, 8, "saved", "", "k"),
        ("buf15", 524288, 2, 8, "saved", "", "v"),
        ("buf8", 2097152, 3, 4, "temporary", "", "scores"),
        ("buf9", 16384, 4, 4, "temporary", "", "amax"),
        ("buf10", 16384, 4, 4, "temporary", "", "amax"),
        ("buf11", 4096, 4, 4, "temporary", "", "any"),
        ("buf13", 16384, 4, 4, "temporary", "", "sum"),
        ("buf14", 2097152, 4, 8, "saved", "", "weights"),
        ("buf16", 524288, 5, 6, "temporary", "", "weights @ v"),
        ("buf17", 524288, 6, 8, "saved", "", "merged heads"),
        ("buf18", 524288, 7, 8, "temporary", "buf16", "proj"),
        ("buf19", 524288, 8, 8, "output", "buf18", "x"),
    ),
}

LocationOf = Callable[[int], Location]


class Inductor:
    """Writes the records of one graph's way through Inductor."""

    def __init__(self, data: Any, location: LocationOf, tensor: Callable[[Any], Any]) -> None:
        self.data = data
        self.location = location
        self.tensor = tensor
        self.kernels = 0
        self.compiles = 0

    def record(self, out: Any, cid: str, call: int, like: str) -> None:
        """Everything from the forward graph to its kernels, as `like` had it."""
        forward = f"{cid}/forward"
        lowered = f"{forward}/lowered"
        nodes = self._from_captured(self._nodes(self.data["lowered"][like]), like)
        out.add(self._graph(forward, "forward", cid, nodes, cid, call))
        same = tuple(_from_itself(node) for node in nodes)
        out.add(self._graph(lowered, "lowered", cid, same, forward, call))
        for row in self.data["scheduler"][like]:
            self._scheduler_node(out, lowered, like, row, nodes)
        self._fusion(out, lowered, like)
        names = []
        for step, (name, label, operations) in enumerate(KERNELS[like]):
            names.append(f"k{self.kernels} {label}")
            by_name = {node.name: node for node in nodes}
            self._kernel(out, lowered, like, step, name, label, operations, by_name)
        self._memory(out, lowered, like, tuple(names))
        wrapper = out.text(self.data["wrapper"][like])
        out.add(Wrapper(graph=lowered, language="python", text=wrapper))
        if like == "0/0/forward" and call == 1:
            self._predicted(out, lowered, {n.name: n for n in nodes})
            backward = self._nodes(self.data["lowered"]["0/0/backward"])
            out.add(self._graph(f"{cid}/backward", "backward", cid, backward, cid, call))

    def _nodes(self, rows: list[Any]) -> tuple[Node, ...]:
        names = {row[0] for row in rows}
        nodes = []
        for name, op, target, args, value, where, made_from in rows:
            inputs = tuple(dict.fromkeys(n for n in re.findall(r"\w+", args) if n in names))
            made = not where and op.startswith("call")
            line = 18 if made else where and where[0]
            nodes.append(
                Node(
                    name=name,
                    op=op,
                    target=target,
                    args=args,
                    inputs=inputs,
                    value=self.tensor(value),
                    location=self.location(line) if line else None,
                    inferred=made,
                    origins=tuple(made_from) if where else ("matmul", "scores", "weights") * made,
                    made_by="pass_pattern_1" if made else "",
                )
            )
        return tuple(nodes)

    def _from_captured(self, nodes: tuple[Node, ...], like: str) -> tuple[Node, ...]:
        """Each input of the forward graph is that of the captured graph in the same place."""
        rows = self.data["captured"][like.removesuffix("/forward")]
        captured = [name for name, op, *_ in rows if op == "placeholder"]
        inputs = [node.name for node in nodes if node.op == "placeholder"]
        of = dict(zip(inputs, captured, strict=False)) if len(inputs) == len(captured) else {}
        return tuple(
            msgspec.structs.replace(node, origins=(of[node.name],)) if node.name in of else node
            for node in nodes
        )

    @staticmethod
    def _graph(
        name: str, kind: Any, cid: str, nodes: tuple[Node, ...], parent: str, call: int
    ) -> Graph:
        ops = sum(node.op.startswith("call") for node in nodes)
        return Graph(
            id=name, kind=kind, compile_id=cid, nodes=nodes, parent=parent, ops=ops, call=call
        )

    def _scheduler_node(
        self, out: Any, graph: str, like: str, row: list[Any], nodes: tuple[Node, ...]
    ) -> None:
        name, kind, origins, domain, reads, writes, loops = row
        order = [node.name for node in nodes if node.name in origins]
        size = 4 * math.prod(domain) if domain else None
        out.add(
            SchedulerNode(
                graph=graph,
                name=name,
                kind=kind,
                origins=tuple(order),
                label=LABELS.get(like, {}).get(name, order[-1]),
                domain=tuple(domain),
                reads=tuple(reads),
                writes=tuple(writes),
                read_bytes=size,
                write_bytes=4 * domain[0] if kind == "reduction" and domain else size,
                loops=out.text("\n".join(loops) + "\n") if loops else "",
            )
        )
        target = next((node.target for node in nodes if node.name == order[-1]), "")
        ir = {"extern": "ExternKernelOut", "reduction": "Reduction"}.get(kind, "Pointwise")
        out.add(Lowered(graph=graph, node=order[-1], target=target, ir=ir, operations=(name,)))

    def _fusion(self, out: Any, graph: str, like: str) -> None:
        ids = self._ids(like)
        seen: set[tuple[str, str]] = set()
        round_, commit = 0, False
        merged: list[tuple[str, str, str]] = []
        count = len(self.data["scheduler"][like])
        for first, second, fused, shared, why in self.data["pairs"][like]:
            pair = (first, second)
            if pair in ROUND_STARTS and (round_ == 0 or commit or not merged):
                count = self._round(out, graph, round_, count, merged)
                round_, commit, seen, merged = round_ + 1, False, set(), []
            commit = commit or (fused and (pair in seen or _joined(first, second) in seen))
            seen.add(pair)
            if commit and fused:
                merged.append((first, second, f"{first}_{second}"))
            chain = self._reads_of(like, second) & self._writes_of(like, first)
            out.add(
                FusionPair(
                    id=f"inductor/{graph.removesuffix('/lowered')}/fuse/{ids[pair]}",
                    graph=graph,
                    round=round_,
                    phase="commit" if commit else "screen",
                    first=first,
                    second=second,
                    fused=fused,
                    rule="" if fused else RULES[why],
                    reason=why or "",
                    kind="vertical" if chain else "horizontal",
                    score=(2.0, 1.0, float(shared), 0.0, -3.0) if fused else (),
                    score_text=f"template 2, type 1, shared bytes {shared}, distance -3"
                    if fused
                    else "",
                    shared_bytes=shared,
                ),
                0.0001,
            )
        self._round(out, graph, round_, count, merged)
        groups = self.data["groups"][like]
        labels = LABELS.get(like, {})
        out.add(
            FusionGroups(
                graph=graph,
                groups=tuple(
                    FusionGroup(
                        name=name,
                        nodes=tuple(nodes),
                        kind="loops" if len(nodes) > 1 else "single",
                        label=" + ".join(dict.fromkeys(labels.get(n, n) for n in nodes)),
                    )
                    for name, nodes in groups
                ),
            )
        )

    def _names(self, like: str) -> dict[str, str]:
        """Scheduler nodes by the node of the graph that each computes."""
        places = {row[0]: place for place, row in enumerate(self.data["lowered"][like])}
        found: dict[str, str] = {}
        for name, _, origins, *_ in self.data["scheduler"][like]:
            word = max(origins, key=lambda origin: places.get(origin, -1))
            count = sum(other.partition(".")[0] == word for other in found.values())
            found[name] = f"{word}.{count + 1}" if count else word
        return found

    def _ids(self, like: str) -> dict[tuple[str, str], str]:
        """Each pair by the members that carry it, of which one reads what the other writes where
        there are such; every pair of groups has its own here."""
        names = self._names(like)
        ids: dict[tuple[str, str], str] = {}
        distinct = {(first, second) for first, second, *_ in self.data["pairs"][like]}
        for pair in sorted(distinct, key=lambda pair: (len(pair[0]) + len(pair[1]), pair)):
            first, second = (group.split("_") for group in pair)
            members = [(one, two) for one in first for two in second]
            members.sort(
                key=lambda two: not self._writes_of(like, two[0]) & self._reads_of(like, two[1])
            )
            found = ["+".join(names[name] for name in sorted(two, key=_number)) for two in members]
            left = (id for id in found if id not in ids.values())
            ids[pair] = next(left, "+".join(names[name] for name in (*first, *second)))
        return ids

    @staticmethod
    def _round(
        out: Any, graph: str, round_: int, before: int, merged: list[tuple[str, str, str]]
    ) -> int:
        if round_:
            after = before - len(merged)
            out.add(
                FusionRound(
                    graph=graph,
                    round=round_,
                    nodes_before=before,
                    nodes_after=after,
                    fused=tuple(merged),
                )
            )
            return after
        return before

    def _reads_of(self, like: str, name: str) -> set[str]:
        rows = {row[0]: row for row in self.data["scheduler"][like]}
        return {buffer for part in name.split("_") for buffer in rows[part][4]}

    def _writes_of(self, like: str, name: str) -> set[str]:
        rows = {row[0]: row for row in self.data["scheduler"][like]}
        return {buffer for part in name.split("_") for buffer in rows[part][5]}

    def _memory(self, out: Any, graph: str, like: str, steps: tuple[str, ...]) -> None:
        if like not in BUFFERS:
            return
        buffers = tuple(
            Buffer(
                name=name,
                bytes=size,
                first=first,
                last=last,
                kind=kind,  # type: ignore[arg-type]
                reuses=reuses,
                inplace=bool(reuses),
                label=label,
            )
            for name, size, first, last, kind, reuses, label in BUFFERS[like]
        )
        out.add(
            MemoryPlan(
                graph=graph,
                steps=steps,
                buffers=buffers,
                peak_bytes=6344704,
                without_reuse_bytes=9502720,
            )
        )

    def _kernel(
        self,
        out: Any,
        graph: str,
        like: str,
        step: int,
        name: str,
        label: str,
        operations: tuple[str, ...],
        nodes: dict[str, Node],
    ) -> None:
        made_of = {row[0]: row[2] for row in self.data["scheduler"][like]}
        origins = {origin for operation in operations for origin in made_of[operation]}
        ordered = tuple(name for name in nodes if name in origins)
        text = dict(self.data["kernels"][like]).get(name, "")
        sections = SECTIONS.get(name, [(r"#pragma omp for|for\(", operations)])
        lines = _kernel_lines(text, sections, made_of, nodes) if text else ()
        out.add(
            Kernel(
                id=f"k{self.kernels}",
                graph=graph,
                name=name,
                label=label,
                language="cpp" if text else "aten",
                text=out.text(text),
                nodes=operations,
                origins=ordered,
                locations=_locations(nodes[origin] for origin in ordered),
                lines=lines,
                loop_nests=_outermost_loops(text),
                step=step,
            )
        )
        self.kernels += 1

    def _predicted(self, out: Any, graph: str, nodes: dict[str, Node]) -> None:
        text = (Path(__file__).parent / "data" / "softmax_triton.py.txt").read_text()
        body = text.splitlines()
        made = [name for name, node in nodes.items() if node.inferred]
        late = ("where_self", "exp", "sum_1", "div")
        lines = []
        for number, line in enumerate(body, start=1):
            if not line.startswith("    tmp") and "tl.store" not in line:
                continue
            if number >= next(i for i, text_ in enumerate(body, 1) if "libdevice.exp" in text_):
                names: tuple[str, ...] = late[1:]
            elif "tl.load" in line:
                names = ("bmm",)
            else:
                names = tuple(made)
            lines.append(_line(number, names, nodes))
        kernel = f"k{self.kernels}"
        out.add(
            Kernel(
                id=kernel,
                graph=graph,
                name="triton_per_fused__softmax_abs_all_amax_eq_mul_ne_sub_view_4",
                label="softmax",
                language="triton",
                text=out.text(text),
                nodes=("op9", "op10", "op11", "op12", "op13", "op14"),
                origins=(*made, *late),
                locations=_locations(nodes[name] for name in (*made, *late)),
                lines=tuple(lines),
                loop_nests=1,
                predicted=True,
            )
        )
        out.add(
            KernelBinary(
                kernel=kernel,
                arch="sm_90",
                configuration="XBLOCK=1 R0_BLOCK=128 warps=2 stages=1",
                ptx=out.text(PTX),
                sass=out.text(SASS),
                registers=22,
                shared_bytes=16,
                spill_bytes=0,
                seconds=0.42,
            )
        )
        self.kernels += 1


def _from_itself(node: Node) -> Node:
    fields = {name: getattr(node, name) for name in Node.__struct_fields__}
    return Node(**{**fields, "origins": (node.name,)})


def _number(operation: str) -> int:
    return int(operation[2:])


def _joined(first: str, second: str) -> tuple[str, str]:
    """A merged pair comes back under a longer name: the pair of its parts that was screened."""
    return (first.split("_")[-1], second.split("_")[0])


def _locations(nodes: Any) -> tuple[Location, ...]:
    found = {node.location.line: node.location for node in nodes if node.location}
    return tuple(found[line] for line in sorted(found))


def _line(number: int, names: tuple[str, ...], nodes: dict[str, Node]) -> KernelLine:
    inferred = all(nodes[name].inferred for name in names)
    exact = [nodes[name] for name in names if not nodes[name].inferred]
    locations = _locations(exact or [nodes[name] for name in names])
    return KernelLine(line=number, nodes=names, locations=locations, inferred=inferred)


def _outermost_loops(text: str) -> int:
    """Loops of a kernel as Inductor writes it that stand in no other."""
    loops = [len(line) - len(line.lstrip()) for line in text.splitlines() if "for(int64_t" in line]
    return loops.count(min(loops)) if loops else 0


def _kernel_lines(
    text: str,
    sections: list[tuple[str, tuple[str, ...]]],
    made_of: dict[str, list[str]],
    nodes: dict[str, Node],
) -> tuple[KernelLine, ...]:
    """Statements after a section's first match belong to its scheduler nodes."""
    rest, current = list(sections), ()
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        if rest and re.search(rest[0][0], line):
            current = rest.pop(0)[1]  # type: ignore[assignment]
        words = line.strip()
        if current and words.endswith(";") and "inductor_cpu" not in words:
            names = [name for operation in current for name in made_of[operation]]
            computing = [name for name in names if "view" not in name and "permute" not in name]
            if current == ("op12",):
                computing = [name for name in computing if nodes[name].inferred]
            lines.append(_line(number, tuple(dict.fromkeys(computing)), nodes))
    return tuple(lines)


PTX = """//
.version 8.7
.target sm_90a
.address_size 64
.visible .entry triton_per_fused__softmax_4(
	.param .u64 .ptr .global .align 1 in_out_ptr0,
	.param .u32 xnumel
)
.reqntid 64
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<42>;
	ld.param.b64 	%rd2, [in_out_ptr0];
	mov.u32 	%r3, %ctaid.x;
	ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];
	mul.f32 	%r5, %r1, 0f3E000000;
	ex2.approx.ftz.f32 	%r17, %r16;
	shfl.sync.bfly.b32 	%r21, %r20, 16, 31, -1;
	st.global.v2.b32 [ %rd1 + 0 ], { %r40, %r41 };
	ret;
}
"""
SASS = """ LDC R1, c[0x0][0x28]
 S2R R0, SR_CTAID.X
 LDG.E.64 R4, desc[UR4][R2.64]
 FMUL R7, R4, 0.125
 MUFU.EX2 R9, R8
 SHFL.BFLY PT, R11, R10, 0x10, 0x1f
 STG.E.64 desc[UR4][R2.64], R12
 EXIT
"""
