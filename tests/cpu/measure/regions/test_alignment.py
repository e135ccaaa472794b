"""Calls, operations and their words lined up between the two sides."""

from __future__ import annotations

import msgspec

from tcw.compiler.measure.regions.alignment import aligned, may_run, plain_word
from tcw.compiler.measure.regions.origins import word
from tcw.compiler.trace.records import TensorMeta
from tests.cpu.measure.regions.program import Program, node


def test_calls_and_operations_are_lined_up_or_not_at_all() -> None:
    assert aligned(["gelu", "linear", "add"], ["gelu", "addmm", "add"]) == [0, 1, 2]
    assert aligned(["cross_entropy"], ["log_softmax", "nll_loss_forward"]) == [0, 0]
    assert aligned(["add", "reshape", "mul"], ["add", "mul"]) == [0, 2]
    assert aligned(["add", "reshape", "mul"], ["add", "clone", "mul"]) == [0, 1, 2]
    assert aligned(["add", "mul"], ["mul", "add"]) is None
    assert aligned(["add"], ["add", "add"]) is None
    assert aligned(["add", "mul"], ["add"]) is None


def test_words_of_targets() -> None:
    assert word("aten._softmax.default") == "_softmax"
    assert word("torch.nn.functional.gelu") == "gelu"
    for operator in ("torchvision.nms.default", "torch.ops.torchvision.nms", "torchvision.nms"):
        assert word(operator) == "nms"
    assert plain_word("native_layer_norm") == "layer_norm"
    assert plain_word(word("aten.add_.Tensor")) == "add"
    assert may_run("linear", "addmm")
    assert not may_run("relu", "gelu")


def sized(*sizes: int) -> TensorMeta:
    return TensorMeta(shape=sizes, dtype="float32")


def test_equal_operations_are_paired_by_the_sizes_of_their_results() -> None:
    """Under autocast, a linear layer's backward converts the gradients of weight and bias; the
    scheduler chooses which runs first."""
    bias, weight = (
        msgspec.structs.replace(
            node(name, "aten._to_copy.default", 3, "linear"), value=sized(*sizes)
        )
        for name, sizes in (("of_bias", (64,)), ("of_weight", (64, 4096)))
    )
    program = Program(
        [node("linear", "torch.nn.functional.linear", 3)], [bias, weight], backward=True
    )
    program.kernel("of_bias")
    program.kernel("of_weight")
    forward = program.eager("aten.addmm.default", 3, phase="forward")
    program.eager("aten._to_copy.default", 3, of=forward, outputs=(sized(64, 4096),))
    program.eager("aten._to_copy.default", 3, of=forward, outputs=(sized(64),))
    found = program.sets()
    assert (["s1"], ["e1"]) in found
    assert (["s0"], ["e2"]) in found


def test_equal_operations_of_unknown_sizes_are_paired_in_the_order_of_the_graph() -> None:
    program = Program(
        [node("linear", "torch.nn.functional.linear", 3)],
        [node(name, "aten.mm.default", 3, "linear") for name in ("mm", "mm_1")],
        backward=True,
    )
    program.kernel("mm_1")
    program.kernel("mm")
    forward = program.eager("aten.addmm.default", 3, phase="forward")
    program.eager("aten.mm.default", 3, of=forward)
    program.eager("aten.mm.default", 3, of=forward)
    found = program.sets()
    assert (["s1"], ["e1"]) in found
    assert (["s0"], ["e2"]) in found
