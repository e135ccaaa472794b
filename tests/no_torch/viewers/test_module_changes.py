"""What differs in a captured graph, as one effect for what was one change."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    Graph,
    Kernel,
    Location,
    Node,
    Source,
    TensorMeta,
    Text,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import difference
from tests.block_trace import block_trace


def node(target: str, module: str = "", line: int = 1, shape: tuple[int, ...] = (4,)) -> Node:
    size = 4
    for one in shape:
        size *= one
    return Node(
        name="",
        op="call_function",
        target=target,
        module=module,
        location=Location(file="m.py", line=line),
        value=TensorMeta(shape=shape, dtype="float32", bytes=size),
    )


def given(target: str, dtype: str = "float32", shape: tuple[int | str, ...] = (2, 4)) -> Node:
    return Node(
        name="", op="placeholder", target=target, value=TensorMeta(shape=shape, dtype=dtype)
    )


def graph(*nodes: Node) -> Recording:
    named = tuple(
        Node(**{name: getattr(one, name) for name in one.__struct_fields__} | {"name": f"n{at}"})
        for at, one in enumerate(nodes)
    )
    return Recording([Graph(id="0/0", kind="captured", compile_id="0/0", nodes=named)])


def effects(base: list[Node], run: list[Node]) -> list[str]:
    found = difference(graph(*base), graph(*run)).effects
    return [one.words + (f" ×{one.count}" if one.count > 1 else "") for one in found]


def layer(number: int) -> list[Node]:
    names = ("norm", "linear", "split", "attention", "linear", "add")
    return [node(name, f"layers.{number}.block", line) for line, name in enumerate(names)]


def test_a_layer_that_is_gone_is_one_effect_and_the_last_of_equal_ones() -> None:
    two, three = [*layer(0), *layer(1)], [*layer(0), *layer(1), *layer(2)]
    assert effects(three, two) == ["layers.2 is gone: 6 operations"]
    assert effects(two, three) == ["layers.2 is new: 6 operations"]


def test_another_activation_is_named_with_the_one_that_it_replaces() -> None:
    def model(*activation: str) -> list[Node]:
        return [
            node(name, f"layers.{number}.act" if name in activation else f"layers.{number}")
            for number in range(3)
            for name in ("linear", *activation)
        ]

    words = "layers.*.act computes relu instead of mul, tanh ×3"
    assert effects(model("mul", "tanh", "mul"), model("relu")) == [words]
    one = "layers.2.act computes relu instead of gelu"
    assert effects(model("gelu"), [*model("gelu")[:-1], node("relu", "layers.2.act")]) == [one]


def test_many_operations_that_are_gone_from_a_module_are_one_effect() -> None:
    kept = [node("linear", "attention", 1), node("softmax", "attention", 9)]
    lines = [node(f"op{n}", "attention", n, (n, 4)) for n in range(2, 9)]
    few, many = [kept[0], *lines[:2], kept[1]], [kept[0], *lines, kept[1]]
    assert effects(few, kept) == ["op2 is gone", "op3 is gone"]
    words = "7 operations are gone from attention: op8, op7, op6, op5 and 3 more"
    assert effects(many, kept) == [words]
    assert effects(kept, many) == [words.replace("gone from", "new in")]


def test_a_custom_operation_is_named() -> None:
    kept = [node("linear", "attention", 1), node("softmax", "attention", 9)]
    lines = [node(f"op{n}", "attention", n) for n in range(2, 9)]
    found = effects(kept, [kept[0], node("mylib.scale", "attention"), *lines, kept[1]])
    assert "mylib::scale is new" in found


def test_inputs_of_another_dtype_are_one_effect() -> None:
    names = ["L_x_", "L_self_modules_a_parameters_weight_", "L_self_modules_b_parameters_weight_"]
    base = [given(name) for name in names]
    assert effects(base, [given(name, "bfloat16") for name in names]) == [
        "3 graph inputs are bfloat16, were float32"
    ]
    assert effects(base, [base[0], base[1], given(names[2], "float64")]) == [
        "self.b.weight is float64, was float32"
    ]


@pytest.mark.parametrize("size", [8, "s77"])
def test_inputs_of_another_size_are_named_unless_it_is_symbolic(size: int | str) -> None:
    names = ["L_x_", "L_self_modules_a_parameters_weight_", "L_self_modules_b_parameters_weight_"]
    base = [given(name) for name in names]
    run = [given(name, shape=(2, size)) for name in names]
    assert effects(base, run) == (
        ["x is 2×8, was 2×4", "2 parameters have other sizes: self.a.weight is 2×8, was 2×4, …"]
        if size == 8
        else []
    )


def test_another_engine_is_the_first_effect_and_its_code_none() -> None:
    records = block_trace()
    engine = structs.replace(records[0].settings, engine="tcw")  # type: ignore[union-attr]
    first = next(record for record in records if isinstance(record, Kernel))
    text = Text(hash="other", body="void other();")
    other = structs.replace(first, text="other")
    run = [other if record is first else record for record in records[1:]]
    run = [structs.replace(records[0], settings=engine), text, *run]
    found = difference(Recording(records), Recording(run))
    assert [kernel.kind for kernel in found.changed_kernels] == ["changed"]
    (only,) = found.effects
    assert only.words == "compiled by tcw instead of inductor"
    assert only.cause == "engine inductor → tcw"
    fewer = [one for one in run if one is not other]
    words = [effect.words for effect in difference(Recording(records), Recording(fewer)).effects]
    assert words[0] == "compiled by tcw instead of inductor: loop nests 37 → 34, kernels 37 → 36"


def test_the_value_of_a_constant_is_told() -> None:
    """Numbers that are no sizes, flags and dtypes; names of nodes and sizes are not compared."""

    def dropout(*arguments: str) -> list[Node]:
        return [
            structs.replace(node("dropout", line=n), args=argument)
            for n, argument in enumerate(arguments)
        ]

    assert effects(dropout("x, 0.1, True"), dropout("y_1, 0.1, True")) == []
    assert effects(dropout("x, 4"), dropout("x, 6")) == []
    assert effects(dropout("x, 2"), dropout("x, 2.0")) == []
    assert effects(dropout("x, 1e-05"), dropout("x, 1e-06")) == [
        "dropout is given 1e-06, was 1e-05"
    ]
    for one, other, words in (
        ("x, 0.1, True", "x, 0.2, True", "0.2, was 0.1"),
        ("q, is_causal=True", "q, is_causal=False", "is_causal=False, was is_causal=True"),
        ("x, gt, -inf", "x, gt, -10000.0", "-10000.0, was -inf"),
        (
            "x, dtype=torch.float32",
            "x, dtype=torch.float16",
            "dtype=torch.float16, was dtype=torch.float32",
        ),
    ):
        assert effects(dropout(one), dropout(other)) == [f"dropout is given {words}"]


@pytest.mark.parametrize("edited", [True, False])
def test_what_was_written_is_told_beside_a_new_break(edited: bool) -> None:
    """What follows a break is in another graph, and what is at it in none: only operations at
    edited lines are the model's change."""
    before = ["def f(x):", "    x = relu(x)", "    y = mul(x)", "    return add(y)"]
    after = list(before)
    after[2:2] = ["    print(x)"]
    after[1] = "    x = gelu(x)" if edited else after[1]

    def recorded(text: list[str], *graphs: tuple[tuple[str, int], ...]) -> Recording:
        body = Text(hash="source", body="\n".join(text))
        records: list[AnyRecord] = [body, Source(file="m.py", text=body.hash)]
        for number, operations in enumerate(graphs):
            nodes = tuple(
                structs.replace(node(name, line=line), name=f"n{line}") for name, line in operations
            )
            id = f"{number}/0"
            records.append(Graph(id=id, kind="captured", compile_id=id, nodes=nodes))
        return Recording(records)

    base = recorded(before, (("relu", 2), ("mul", 3), ("add", 4)))
    first = "gelu" if edited else "relu"
    run = recorded(after, ((first, 2),), (("mul", 4), ("add", 5)))
    found = [effect.words for effect in difference(base, run).effects]
    told = ["gelu is new", "relu is gone"] if edited else []
    assert found == [*told, "graphs 1 → 2"]
