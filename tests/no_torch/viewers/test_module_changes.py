"""What differs in a captured graph, as one effect for what was one change."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    Failure,
    Graph,
    GraphBreak,
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


MODEL = """\
class M:
    def __init__(self):
        self.drop = Dropout(0.1)
        self.act = ReLU()
    def forward(self, x):
        x = self.act(x)
        x = self.drop(x)
        y = mul(x)
        return add(y)
"""


def recorded(text: str, *graphs: list[Node], more: tuple[AnyRecord, ...] = ()) -> Recording:
    """A file, and what its graphs compute."""
    body = Text(hash=text, body=text)
    records: list[AnyRecord] = [body, Source(file="m.py", text=body.hash)]
    for number, nodes in enumerate(graphs):
        named = tuple(structs.replace(one, name=f"n{at}") for at, one in enumerate(nodes))
        id = f"{number}/0"
        records.append(Graph(id=id, kind="captured", compile_id=id, nodes=named))
    return Recording([*records, *more])


def model(activation: str = "relu", dropout: str = "x, 0.1", below: int = 0) -> list[Node]:
    """`below`: by how many lines what follows the dropout has moved."""
    return [
        node(activation, "act", 6),
        structs.replace(node("dropout", "drop", 7), args=dropout),
        node("mul", line=8 + below),
        node("add", line=9 + below),
    ]


BROKEN = MODEL.replace("        y = mul(x)", "        print(x)\n        y = mul(x)")


def told(base: Recording, run: Recording) -> list[tuple[str, str]]:
    """What changed in the model, which comes first, and why."""
    found = difference(base, run).effects
    kinds = [one.kind for one in found]
    assert kinds == sorted(kinds, key=lambda kind: kind not in ("failure", "operation"))
    return [(one.words, one.cause) for one in found if one.kind == "operation"]


def test_what_changed_in_the_model_is_told_before_a_new_break() -> None:
    """Also where the edited line is another one than that of the operation."""
    base = recorded(MODEL, model())
    for before, after, nodes, words in (
        ("Dropout(0.1)", "Dropout(0.2)", model(dropout="x, 0.2", below=1),
         "dropout is given 0.2, was 0.1"),
        ("ReLU()", "GELU()", model("gelu", below=1), "act computes gelu instead of relu"),
    ):  # fmt: skip
        run = recorded(BROKEN.replace(before, after), nodes[:2], nodes[2:])
        ((said, cause),) = told(base, run)
        assert said == words
        assert cause.endswith(after)
    run = recorded(BROKEN, model(below=1)[:2], model(below=1)[2:])
    assert told(base, run) == [], "only the graph is cut"


def test_what_a_break_leaves_to_python_is_not_gone_from_the_model() -> None:
    kept = [one for one in model(below=1) if one.module != "act"]
    site = GraphBreak(
        compile_id="0/0", attempt=0, gb="", type="print", context="", explanation="", hints=(),
        location=Location(file="m.py", line=6),
    )  # fmt: skip
    run = recorded(BROKEN, kept[:1], kept[1:], more=(site,))
    assert told(recorded(MODEL, model()), run) == []
    added = recorded(MODEL.replace("add(y)", "tanh(add(y))"), [*model(), node("tanh", line=9)])
    assert told(added, run) == [("tanh is gone", "m.py:10 is edited: return add(y)")]


def test_what_a_side_that_failed_did_not_reach_is_unknown() -> None:
    failed = Failure(type="RuntimeError", message="no", doing="call 1")
    text = MODEL.replace("        y = mul(x)\n        return add(y)", "        raise RuntimeError")
    text = text.replace("ReLU", "GELU")
    base, run = recorded(MODEL, model()), recorded(text, model("gelu")[:2], more=(failed,))
    for pair, words in (
        ((base, run), "act computes gelu instead of relu"),
        ((run, base), "act computes relu instead of gelu"),
    ):
        ((said, cause),) = told(*pair)
        assert said == words
        assert cause.startswith("m.py:4 is edited: self.act = ")


def test_operations_on_sizes_are_not_the_model_s() -> None:
    size = structs.replace(node("size", line=8), op="call_method", value=None)
    half = structs.replace(node("operator.floordiv", line=8), value=None)
    written = structs.replace(node("operator.setitem", line=8), value=None)
    found = effects(model(), [*model()[:3], size, half, written, model()[3]])
    assert found == ["setitem is new"]


def test_a_recompile_does_not_tell_a_change_again() -> None:
    def twice(*nodes: Node) -> Recording:
        first, second = (graph(*nodes).records[0] for _ in range(2))
        assert isinstance(second, Graph)
        return Recording([first, structs.replace(second, id="0/1", compile_id="0/1")])

    (effect,) = difference(twice(*model()), twice(*model(), node("tanh", line=9))).effects
    assert (effect.words, effect.count) == ("tanh is new", 1)


def test_an_edit_elsewhere_is_no_cause_if_a_definition_was_edited_too() -> None:
    """Which of the two changed a value in a function that neither touched is unknown."""
    text = MODEL.replace("Dropout(0.1)", "Dropout(make(0.1))").replace("mul(x)", "mul(x, 2)")
    nodes = model()
    nodes[2] = structs.replace(nodes[2], args="x, 2.5")
    nodes[3] = structs.replace(nodes[3], args="y, 1.5")
    base = model()
    base[2], base[3] = (
        structs.replace(base[2], args="x, 1.5"),
        structs.replace(base[3], args="y, 0.5"),
    )
    assert [cause for _, cause in told(recorded(MODEL, base), recorded(text, nodes))] == [
        "m.py:8 is edited: y = mul(x, 2)", "",
    ]  # fmt: skip
