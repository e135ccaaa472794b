"""A redacted trace: every text of every record is classified, and what is the user's is gone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from tcw.compiler.trace.reader import TraceDecoder
from tcw.compiler.trace.records import (
    Advice,
    AnyRecord,
    EagerFallback,
    End,
    Graph,
    Kernel,
    Location,
    Node,
    Output,
    Source,
    Start,
    Text,
    Warned,
)
from tcw.compiler.trace.redaction import redacted
from tcw.compiler.trace.redaction.fields import FIELDS
from tcw.compiler.trace.redaction.names import NeutralNames
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.command_line import command_line
from tcw.viewers.markdown.report import report
from tcw.viewers.panes import findings, profiled
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tcw.workbench.cli.main import main
from tests.no_torch import profiles, traces
from tests.no_torch.every_record import every_record
from tests.no_torch.traces import FILE, opening
from tests.no_torch.viewers.panes.conftest import view_of


def _has_text(kind: inspect.Type) -> bool:
    match kind:
        case inspect.StrType():
            return True
        case inspect.UnionType() | inspect.TupleType():
            return any(map(_has_text, getattr(kind, "types", getattr(kind, "item_types", ()))))
        case inspect.VarTupleType():
            return _has_text(kind.item_type)
        case inspect.DictType():
            return _has_text(kind.key_type) or _has_text(kind.value_type)
    return False


def _structs(kind: inspect.Type, found: dict[str, set[str]]) -> dict[str, set[str]]:
    match kind:
        case inspect.StructType():
            if kind.cls.__name__ not in found:
                found[kind.cls.__name__] = {
                    field.name for field in kind.fields if _has_text(field.type)
                }
                for field in kind.fields:
                    _structs(field.type, found)
        case inspect.UnionType() | inspect.TupleType():
            for each in getattr(kind, "types", getattr(kind, "item_types", ())):
                _structs(each, found)
        case inspect.VarTupleType():
            _structs(kind.item_type, found)
        case inspect.DictType():
            _structs(kind.value_type, found)
    return found


def test_every_text_of_every_record_is_classified() -> None:
    texts = {
        name: fields
        for name, fields in _structs(inspect.type_info(AnyRecord), {}).items()
        if fields
    }
    assert {name: set(fields) for name, fields in FIELDS.items()} == texts, (
        "classify new fields in compiler/trace/redaction/fields.py"
    )


def _lines(records: list[AnyRecord]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def test_a_redacted_trace_of_every_record_is_whole() -> None:
    decoder = TraceDecoder()
    records = list(redacted(every_record()))
    read = decoder.feed(_lines(records))
    assert not decoder.losses.damaged
    assert not decoder.losses.unknown
    assert sum(isinstance(one, Warned) for one in read) >= 1


SECRET = """\
import torch
from acme.vault import brew

PASSPHRASE = "open sesame"


class Zanzibar(torch.nn.Module):
    def forward(self, marmalade, k=0.0371):
        kumquat_norm = brew(marmalade) * k
        print("the marmalade is", kumquat_norm)
        return torch.relu(kumquat_norm)
"""
CODE = """\
// kumquat_norm = brew(marmalade) * k
#pragma GCC ivdep
void cpp_fused_relu(const float* in_ptr0) { auto tmp1 = in_ptr0[0] * 0.0371; }
"""


def _trace() -> list[AnyRecord]:
    texts = [Text(hash=text_hash(body), body=body) for body in (SECRET, CODE)]
    where = Location(file="/home/ada/acme/zanzibar.py", line=9, function="Zanzibar.forward")
    node = Node(
        name="l_self_kumquat_norm_1", op="call_function", target="torch.relu", location=where,
        args="marmalade, 0.0371, 'open sesame'", module="layers.kumquat_norm",
    )  # fmt: skip
    return [
        *opening(),
        *texts,
        Source(file="/home/ada/acme/zanzibar.py", text=texts[0].hash),
        Graph(id="0/0", kind="captured", compile_id="0/0", nodes=(node,)),
        Kernel(
            id="k0", graph="0/0", name="cpp_fused_relu", label="relu", language="cpp",
            text=texts[1].hash, locations=(where,),
        ),
        Output(stream="stdout", text="the marmalade is 3"),
        End(status="ok", seconds=1.0),
    ]  # fmt: skip


def test_what_is_the_users_is_gone_and_the_structure_stays() -> None:
    records = list(redacted(_trace()))
    text = _lines(records).decode().lower()
    for word in ("zanzibar", "marmalade", "kumquat", "brew", "vault", "sesame", "0.0371", "ada"):
        assert word not in text, word
    recording = Recording()
    recording.feed(records)
    node = recording.graphs["0/0"].nodes[0]
    assert node.target == "torch.relu"
    assert node.module.split(".")[1] in node.name, "one name stands for both"
    assert node.args.startswith(f"{node.args.partition(',')[0]}, …, ")
    kernel = recording.kernels["k0"]
    code = recording.text(kernel.text).split("\n")
    assert code[:2] == ["", "#pragma GCC ivdep"]
    assert "in_ptr0[0] * …" in code[2]
    source = next(
        record for record in records if isinstance(record, Source) and "file2" in record.file
    )
    assert recording.text(source.text) == "\n" * SECRET.count("\n")
    assert kernel.locations[0].file == source.file
    told = next(record for record in records if isinstance(record, Warned))
    assert told.asked
    first = findings.content(view_of(records), 120).rows[0]
    assert "redacted: without the text of source files (2)" in "".join(one[0] for one in first.body)
    assert told.message.startswith("redacted: without the text of source files (2)")


def test_a_derived_name_has_the_neutral_one_in_it() -> None:
    names = NeutralNames()
    names.collect("kumquat_norm x")
    assert names.scrubbed("L_self_kumquat_norm_2_ + kumquat_norms") == (
        "L_self_name1_2_ + kumquat_norms"
    )
    assert names.scrubbed("x.softmax(dim=-1)") == "x.softmax(dim=-1)"


def test_files_of_torch_and_python_keep_their_paths() -> None:
    names = NeutralNames()
    assert names.file("/venv/lib/python3.11/site-packages/torch/nn/x.py") == "/torch/nn/x.py"
    assert names.file("/usr/lib/python3.11/ast.py") == "/ast.py"
    assert names.file("/v/lib/python3.11/site-packages/acme/x.py") == "/redacted/file1.py"


@pytest.mark.parametrize("make", [traces.slower, traces.recompile_limit, profiles.layout_copies])
def test_no_command_names_what_redaction_replaced(make: Callable[[], list[AnyRecord]]) -> None:
    records = list(redacted(make()))
    recording = Recording(records)
    said = [to_text(explain(recording), 200), report(recording)]
    said += [fix.code for finding in summarise(recording).findings for fix in finding.fixes]
    view = view_of(records)
    said.append(profiled.command(view))
    commands = re.findall(r"tcw [a-z]+ [^`\n]*", "\n".join(said))
    assert not [command for command in commands if re.search(r"/redacted|(?:file|name)\d", command)]
    start = next(record for record in records if isinstance(record, Start))
    wanted = msgspec.structs.replace(
        start.settings, model="name1", inputs=("name2",), engine="tcw", mark_dynamic=("name3:0",)
    )
    assert command_line("profile", wanted, ("--nests",)) == (
        "tcw profile FILE --engine tcw --no-grad --nests"
    )


def test_through_the_command_line(tmp_path: Path) -> None:
    trace, output = tmp_path / "run.tcw", tmp_path / "redacted.tcw"
    trace.write_bytes(_lines(_trace()))
    assert main(["export", str(trace), "--redact", "-o", str(trace)]) == 2
    assert main(["export", str(trace), "--redact", "-o", str(output)]) == 0
    assert FILE.encode() not in output.read_bytes()
    assert main(["export", str(output), "-o", str(tmp_path / "run.html")]) == 0
    assert "redacted: without the text" in (tmp_path / "run.html").read_text()


def test_advice_without_its_code_is_a_sentence_of_its_own() -> None:
    advice = (
        Advice(text="Or let torch capture the number as a symbol", code="secret = 1"),
        Advice(text="Or leave it", options=("--mark-dynamic", "kumquat:0")),
        Advice(text="Order does not matter", code="secret = 2"),
    )
    fallback = EagerFallback(reason="r", kind="recompile-limit", compile_id="0/0", advice=advice)
    (found,) = [one for one in redacted([*opening(), fallback]) if isinstance(one, EagerFallback)]
    assert [(one.text, one.code) for one in found.advice] == [
        ("Let torch capture the number as a symbol", ""),
        ("Or leave it", ""),
        ("Order does not matter", ""),
    ]
    assert found.advice[1].options == ()
