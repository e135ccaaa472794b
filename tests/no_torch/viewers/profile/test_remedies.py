"""What is suggested against a break, a recompile and a mask: what tcw can try by itself."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.records import (
    SCHEMA_VERSION,
    Advice,
    AnyRecord,
    Argument,
    CallStart,
    GraphBreak,
    Location,
    Settings,
    Source,
    Start,
    Text,
)
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import break_sites
from tcw.viewers.summary.place import Place
from tcw.viewers.summary.profile.causes.remedies import of_attention, of_break, of_recompile
from tcw.workbench.request.options import changed_by

FILE = "/home/u/model.py"
CODE = """\
import math, torch, logging
log = logging.getLogger()

@torch.compiler.disable
def aside(x):
    return x

def model(x, t, mask):
    print("now", x.shape)
    log.info("at %s", x.mean())
    self.note(x)
    y = x * x.sum().item()
    z = y * math.exp(x.max())
    if z.abs().max() > 8:
        z = z.clamp(-8, 8)
    assert z.sum() > 0
    z = F.scaled_dot_product_attention(z, z, z, attn_mask=mask)
    return aside(z)
"""
ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
ADD = "torch._dynamo.config.{}.add({})"


def recording(*more: AnyRecord, file: str = FILE) -> Recording:
    made = Recording()
    start = Start(
        schema_version=SCHEMA_VERSION,
        tool_version="0.1.0",
        settings=Settings(file=FILE),
        python="3.11.7",
        platform="linux",
        pid=7,
        time=1.0,
    )
    text = Text(hash=text_hash(CODE), body=CODE)
    made.feed([start, text, Source(file=file, text=text_hash(CODE)), *more])
    return made


def remedies(
    type: str, line: int, *codes: str, edit: str = "", context: str = "", file: str = FILE
) -> list[str]:
    """The options of what is suggested, each as one text."""
    advice = tuple(Advice(text="", code=code, edit=edit) for code in codes)
    broke = GraphBreak(
        compile_id="0/0",
        attempt=0,
        gb="",
        type=type,
        context=context,
        explanation="",
        hints=(),
        location=Location(file=file, line=line),
        advice=advice,
    )
    made = recording(broke, file=file)
    (site,) = break_sites(made)
    found = of_break(made, site)
    assert len({one.group for one in found}) <= 1
    for one in found:
        assert not changed_by(Settings(file=FILE), one.options).reason
    return [" ".join(one.options) for one in found]


def test_a_print_is_moved_by_torch_or_left_out() -> None:
    setting = ADD.format("reorderable_logging_functions", "print")
    add = "--set reorderable_logging_functions.add(print)"
    assert remedies("Failed to trace builtin operator", 9, setting) == [add, "--edit drop:9"]
    with_text = f"{setting}\nprint('now', f'{{x.shape}}')"
    assert remedies("Failed to trace builtin operator", 9, with_text) == [
        f"{add} --edit text:9",
        "--edit drop:9",
    ]


def test_what_no_setting_moves_is_moved_in_the_source() -> None:
    found = remedies("Failed to trace builtin operator", 9)
    assert found == ["--edit drop:9", "--edit later:9"]


def test_a_log_call() -> None:
    kind = "logging.Logger method not supported for non-export cases"
    setting = ADD.format("ignore_logging_functions", "log.info")
    assert remedies(kind, 10, setting) == [
        "--set ignore_logging_functions.add(log.info)",
        "--edit drop:10",
    ]
    own = ADD.format("ignore_logging_functions", "self.log.info")
    assert remedies(kind, 10, own) == ["--edit drop:10", "--edit later:10"]


def test_a_call_that_may_compute_something_is_not_left_out() -> None:
    assert remedies("Unsupported function call", 11) == []


def test_a_number_is_captured_or_stays_a_tensor() -> None:
    assert remedies(ITEM, 12) == ["--set capture_scalar_outputs = True", "--edit item:12"]
    assert remedies("Data dependent operator", 13, "z = y * torch.exp(x.max())") == [
        "--edit torch-math:13"
    ]


def test_a_branch_on_data_is_told_only() -> None:
    code = "z = torch.where(z.abs().max() > 8, z.clamp(-8, 8), z)"
    assert remedies("Data-dependent branching", 14, code) == []
    assert remedies("Data-dependent branching", 14, "z = …", edit="always") == ["--edit always:14"]


def test_an_assertion() -> None:
    kind = "Data-dependent assertion failed (cannot compile partial graph)"
    assert remedies(kind, 16) == ["--edit drop:16"]


@pytest.mark.parametrize("word", ["calling", "inlining"])
def test_a_disabled_function_is_found_where_it_is_made(word: str) -> None:
    kind = f"Skip {word} `torch.compiler.disable()`d function"
    assert remedies(kind, 18, context="<function aside at 0x7f00>") == ["--edit undisable:4"]
    assert remedies(kind, 18, context="<function other at 0x7f00>") == []


def test_a_library_is_not_edited() -> None:
    assert remedies(ITEM, 12, file="/usr/lib/lib.py") == ["--set capture_scalar_outputs = True"]


def recompile(name: str, *options: str, code: str = "", line: int = 0) -> list[tuple[str, ...]]:
    place = Place(FILE, line) if line else None
    advice = [Advice(text="", code=code, options=options)]
    return [one.options for one in of_recompile(recording(), name, advice, place)]


def test_every_size_that_changed_is_marked() -> None:
    both = ("--mark-dynamic", "x:0", "--mark-dynamic", "y:1")
    assert recompile("x.size(0)", *both) == [both]


@pytest.mark.parametrize(
    "options", [("--mark-dynamic", "x:0", "--mark-dynamic", "h:1"), ("--as-tensor", "h")]
)
def test_an_option_for_what_the_model_is_not_given_is_not_suggested(
    options: tuple[str, ...],
) -> None:
    """`h` is an argument of a function that the model calls behind a graph break."""

    def found(*names: str) -> list[tuple[str, ...]]:
        call = CallStart(call=1, arguments=tuple(Argument(name=name) for name in names))
        advice = [Advice(text="", options=options)]
        return [one.options for one in of_recompile(recording(call), "h", advice, None)]

    assert found("x", "h") == [options]
    assert found("x") == []


def test_a_number_becomes_a_tensor_and_maths_function_torchs() -> None:
    assert recompile("t", "--as-tensor", "t", line=13) == [
        ("--as-tensor", "t", "--edit", "torch-math:13")
    ]
    assert recompile("t", "--as-tensor", "t", line=9) == [("--as-tensor", "t")]
    assert recompile("t", code="t = torch.tensor(t)") == []


def test_a_setting_against_recompiles() -> None:
    code = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"
    found = recompile("self.step", code=code)
    assert found == [("--set", "allow_unspec_int_on_nn_module = True")]


def test_a_mask() -> None:
    found = of_attention(recording(), Place(FILE, 17))
    assert [one.options for one in found] == [
        ("--edit", "no-mask:17"),
        ("--edit", "causal:17"),
    ]
    assert not of_attention(recording(), Place(FILE, 12))
    assert not of_attention(recording(), None)
