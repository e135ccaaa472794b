"""torch's texts of failed guards, parsed; its source expressions in the user's terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.failed_guard import guard_behind, parse_failed_guard, without_comment
from tcw.compiler.trace.records import Guard
from tcw.compiler.trace.source_names import closure_name, guard_name, readable

TEXTS = [
    (
        "tensor 'L['x']' size mismatch at index 0. expected 2, actual 3",
        ("size", "L['x']", "x.size(0)", "2", "3"),
    ),
    (
        "tensor 'L['self']._parameters['weight']' stride mismatch at index 1. expected 8, actual 1",
        ("stride", "L['self']._parameters['weight']", "self.weight.stride(1)", "8", "1"),
    ),
    (
        "tensor 'L['x']' dtype mismatch. expected Float, actual BFloat16",
        ("dtype", "L['x']", "x.dtype", "float32", "bfloat16"),
    ),
    (
        "tensor 'L['x']' rank mismatch. expected 2, actual 3",
        ("rank", "L['x']", "x.dim()", "2", "3"),
    ),
    (
        "tensor 'L['x']' requires_grad mismatch. expected requires_grad=1",
        ("requires_grad", "L['x']", "x.requires_grad", "True", "False"),
    ),
    (
        "tensor 'L['x']' Tensor device index mismatch. Expected device index to be 0, got 1",
        ("device", "L['x']", "x.device", "0", "1"),
    ),
    (
        "tensor 'L['x']' dispatch key set mismatch. expected DispatchKeySet(CPU, BackendSelect, "
        "ADInplaceOrView, AutogradCPU), actual DispatchKeySet(CUDA, BackendSelect, "
        "ADInplaceOrView, AutogradCUDA)",
        ("device", "L['x']", "x.device", "cpu", "cuda"),
    ),
    (
        "expected type of 'L['x']' to be a tensor type, ' but found <class 'int'>",
        ("type", "L['x']", "x", "a tensor", "int"),
    ),
    (
        "expected type of 'L['x']' to be <class 'torch.Tensor'>, but found <class 'float'>",
        ("type", "L['x']", "x", "a tensor", "float"),
    ),
    (
        "Cache line invalidated because L['model'].forward got deallocated",
        ("deallocated", "L['model'].forward", "model.forward", "alive", "deallocated"),
    ),
    (
        "L['self'].training == True          # return dropout(x)  # net.py:33 in forward",
        ("value", "L['self'].training", "self.training", "True", ""),
    ),
    (
        "L['name'] == 'a == b'",
        ("value", "L['name']", "name", "'a == b'", ""),
    ),
    (
        "len(L['items']) == 2                # for i in items:  # net.py:4 in f",
        ("length", "L['items']", "len(items)", "2", ""),
    ),
    ("len(L['d']) != 1", ("length", "L['d']", "len(d)", "1", "")),
    (
        "list(dict.keys(L['d']))[0] == 'a'",
        ("keys", "L['d']", "list(d.keys())[0]", "'a'", ""),
    ),
    (
        "not ___dict_contains('forward', L['self'].__dict__)",
        ("keys", "L['self'].__dict__", "'forward' in self.__dict__", "False", "True"),
    ),
    (
        "___as_tensor(L['temperature']).item() == 0.75  # (unknown source, please file a bug)",
        ("value", "L['temperature']", "temperature", "0.75", ""),
    ),
    ("L['mask'] is None", ("value", "L['mask']", "mask", "None", "")),
    ("L['b'] is L['a']", ("alias", "L['b']", "b, a", "one object", "different objects")),
    (
        "___check_obj_id(L['fn'].__code__, 140372816302352), type=<class 'code'>  # fn(x)",
        ("identity", "L['fn']", "fn", "", ""),
    ),
    (
        "___check_type_id(L['x'], 12), type=<class 'torch.nn.modules.linear.Linear'>  # (HINT: t)",
        ("type", "L['x']", "x", "Linear", ""),
    ),
    (
        "GLOBAL_STATE changed: grad_mode num_threads ",
        ("state", "", "grad mode, num threads", "", ""),
    ),
    (
        "utils_device.CURRENT_DEVICE == None   # _dynamo/output_graph.py:1122",
        ("state", "", "default device", "None", ""),
    ),
    (
        'Duplicate tensors found: ["a", "b"]',
        ("alias", "", "a, b", "different tensors", "one tensor"),
    ),
    (
        "L['b'].size()[0] == L['a'].size()[0]  # (unknown var s52, please file a bug)",
        ("shape", "", "b.size(0), a.size(0)", "b.size(0) == a.size(0)", ""),
    ),
    (
        "hasattr(L['x'], '_dynamo_dynamic_indices') == False",
        ("marking", "L['x']", "dynamic marks of x", "none", "marked"),
    ),
    (
        "not hasattr(L['self'], 'cache')      # if not hasattr(self, 'cache'):  # m.py:6 in f",
        ("attribute", "L['self']", "hasattr(self, 'cache')", "False", "True"),
    ),
    # as in a log, and as a reason to compile again: without the scope of local names
    (
        "hasattr(m.layer, 'w')",
        ("attribute", "L['m'].layer", "hasattr(m.layer, 'w')", "True", "False"),
    ),
    ("n == 3", ("value", "L['n']", "n", "3", "")),
    ("self.training == True", ("value", "L['self'].training", "self.training", "True", "")),
    ("len(items) == 2", ("length", "L['items']", "len(items)", "2", "")),
    ("not items", ("length", "L['items']", "len(items)", "0", "")),
    ("mask is not None", ("value", "L['mask']", "mask", "not None", "")),
    ("___dict_contains('a', kw)", ("keys", "L['kw']", "'a' in kw", "True", "False")),
    ("x.size()[0] == y.size()[1]", ("shape", "", "x.size(0), y.size(1)",
                                    "x.size(0) == y.size(1)", "")),
    ("2 <= self.mask.size()[0]", ("shape", "", "self.mask.size(0)",
                                  "2 <= self.mask.size(0)", "")),
    (
        "tensor 'kwargs['ids']' size mismatch at index 1. expected 4, actual 6",
        ("size", "L['kwargs']['ids']", "kwargs['ids'].size(1)", "4", "6"),
    ),
    (
        "BACKEND_MATCH failure: torch.compile detected different backend callables. Cached "
        "backend: _TorchCompileInductorWrapper (id=0x7f01). New backend: "
        "_TorchCompileInductorWrapper (id=0x7f02). If this is unexpected, wrap it",
        ("backend", "", "backend", "_TorchCompileInductorWrapper",
         "another _TorchCompileInductorWrapper"),
    ),
    (
        "BACKEND_MATCH failure: torch.compile detected different backend callables. If this is "
        "unexpected, wrap your backend",
        ("backend", "", "backend", "a backend", "another backend"),
    ),
    ("something new in torch 3", ("other", "", "", "something new in torch 3", "")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_texts_of_torch(text: str, wanted: tuple[str, ...]) -> None:
    found = parse_failed_guard(text)
    assert (found.what, found.source, found.name, found.expected, found.seen) == wanted
    assert found.text == without_comment(text)


@given(st.text())
def test_any_text_is_kept(text: str) -> None:
    assert parse_failed_guard(text).text == without_comment(text)


@given(st.sampled_from([text for text, _ in TEXTS]), st.text(max_size=8), st.integers(0, 60))
def test_damaged_texts_are_no_error(text: str, noise: str, place: int) -> None:
    assert parse_failed_guard(text[:place] + noise + text[place:]).what


NAMES = {
    "L['x']": "x",
    "L['self']._modules['layers']._modules['0']._parameters['weight']": "self.layers[0].weight",
    "L['self']._buffers['mask']": "self.mask",
    "L['self'].__dict__['scale']": "self.scale",
    "G['__builtins_dict___12']['len']": "len",
    "G['__import_torch_dot_nn_dot_functional'].relu": "torch.nn.functional.relu",
    "__import__('torch').utils._pytree.SUPPORTED_NODES": "torch.utils._pytree.SUPPORTED_NODES",
    "L['x'].size()[1]": "x.size(1)",
    "L['batch']['ids']": "batch['ids']",
    "list(dict.keys(L['d']))[0]": "list(d.keys())[0]",
    "type(L['x'])": "type(x)",
}


@pytest.mark.parametrize("source", NAMES)
def test_sources_in_the_users_terms(source: str) -> None:
    assert readable(source) == NAMES[source]


def test_ambient_guards_have_words() -> None:
    assert guard_name("GRAD_MODE", "") == "grad mode"
    assert guard_name("SOMETHING_NEW", "") == "something new"


def test_closures_that_cannot_be_looked_at_have_no_name() -> None:
    cell = "L['fn'].__closure__[0].cell_contents"
    assert closure_name(cell, lambda text: 3) == ""
    assert closure_name("L['x']", lambda text: 3) == ""


def test_the_guard_behind_a_failure() -> None:
    guards = [
        Guard(kind="TYPE_MATCH", name="fn", source="L['fn']"),
        Guard(kind="CLOSURE_MATCH", name="fn", source="L['fn']"),
        Guard(kind="CONSTANT_MATCH", name="n", source="L['n']", code=("L['n'] == 1",)),
        Guard(kind="SHAPE_ENV", name="symbolic shapes", source=""),
    ]
    assert guard_behind(parse_failed_guard("L['n'] == 1  # line"), guards) is guards[2]
    code = "___check_obj_id(L['fn'].__code__, 1), type=<class 'code'>"
    assert guard_behind(parse_failed_guard(code), guards) is guards[1]
    assert guard_behind(parse_failed_guard("2 <= L['x'].size()[0]"), guards) is guards[3]
    assert guard_behind(parse_failed_guard("L['n'].real == 2"), guards) is guards[2]
    assert guard_behind(parse_failed_guard("L['other'] == 2"), guards) is None
    assert guard_behind(parse_failed_guard("n == 2"), guards) is guards[2]
    assert guard_behind(parse_failed_guard("2 <= x.size()[0]"), guards) is guards[3]
