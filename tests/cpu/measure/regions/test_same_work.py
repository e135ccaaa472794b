"""Which regions do the same work on both sides."""

from __future__ import annotations

import pytest

from tcw.compiler.measure.regions.origins import Computes, Origins
from tcw.compiler.measure.regions.regions import Grouped, PlacedStep
from tcw.compiler.measure.regions.same_work import sameness
from tcw.compiler.trace.records import Graph, Node, TensorMeta
from tcw.compiler.trace.records.profile import CompiledStep, EagerOperation

GRAPH = "0/0/forward/lowered"
ROWS = TensorMeta(shape=(256, 1024), dtype="float32", stride=(1024, 1))
WEIGHT = TensorMeta(shape=(1024, 64), dtype="float32", stride=(1, 1024))
COPIED = TensorMeta(shape=(1024, 64), dtype="float32", stride=(64, 1))
HALF = TensorMeta(shape=(1024, 64), dtype="bfloat16", stride=(1, 1024))


def region(
    weight: TensorMeta = WEIGHT, step: str = "extern_kernels.mm", kind: str = "aten", **more: object
) -> tuple[Origins, Grouped]:
    """A product: eager's on `ROWS` and `WEIGHT`, the compiled one on `weight`."""
    nodes = (
        Node(name="x", op="placeholder", target="x", value=ROWS),
        Node(name="w", op="placeholder", target="w", value=weight),
        Node(name="mm", op="call_function", target="aten.mm.default", inputs=("x", "w")),
    )
    origins = Origins(
        [Graph(id=GRAPH, kind="lowered", compile_id="0/0", nodes=nodes, parent="0/0")]
    )
    made = CompiledStep(id="s0", call=1, kind=kind, name=step)  # type: ignore[arg-type]
    view = EagerOperation(id="e0", call=1, operation="aten.t.default", inputs=(COPIED,))
    product = EagerOperation(
        id="e1", call=1, operation="aten.mm.default", inputs=(ROWS, WEIGHT), launches=1
    )
    placed = PlacedStep(made, Computes(lowered=((GRAPH, "mm"),)))
    return origins, Grouped([placed], [view, product])


@pytest.mark.parametrize(
    "step", ["extern_kernels.mm", "torch.ops.aten.mm.default", "aten.mm.default"]
)
def test_the_same_product_of_the_same_tensors_is_the_same_call(step: str) -> None:
    assert sameness(*region(step=step)) == "calls"


@pytest.mark.parametrize("weight", [COPIED, HALF])
def test_other_strides_or_another_dtype_are_another_call(weight: TensorMeta) -> None:
    assert sameness(*region(weight)) == ""


def test_another_library_is_another_call() -> None:
    assert sameness(*region(step="mkldnn._linear_pointwise.default")) == ""


def test_a_kernel_is_no_call() -> None:
    assert sameness(*region(step="mm", kind="kernel")) == ""


def test_what_only_one_side_does_as_well_is_not_the_same() -> None:
    origins, group = region()
    more = EagerOperation(id="e2", call=1, operation="aten.add.Tensor", launches=1)
    assert sameness(origins, Grouped(group.steps, [*group.operations, more])) == ""
    assert sameness(origins, Grouped([], group.operations)) == ""
    assert sameness(origins, Grouped(group.steps, [])) == ""


def test_a_call_whose_node_is_not_known_is_not_the_same() -> None:
    origins, group = region()
    alone = Grouped([PlacedStep(group.steps[0].step, Computes())], group.operations)
    assert sameness(origins, alone) == ""
