"""What is read from torch's logs, however they lie on the disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import jsonschema
import pytest

from tcw.compiler.trace.compile_names import CompileNames
from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import (
    CacheLookup,
    Collectives,
    CudagraphRecording,
    CudagraphSkip,
    Environment,
    FrameEnd,
    FrameStart,
    GraphBreak,
    Guards,
    Kernel,
    Phase,
    Recompile,
)
from tcw.compiler.trace.torch_logs.decoder import LogDecoder
from tcw.compiler.trace.torch_logs.fx_text import parse, tensor_meta
from tcw.compiler.trace.torch_logs.log_digests import digest_log
from tcw.compiler.trace.torch_logs.log_files import logs
from tcw.compiler.trace.torch_logs.logged_breaks import graph_break
from tcw.compiler.trace.torch_logs.logged_guards import recompile
from tcw.compiler.trace.torch_logs.logged_places import LogSources
from tcw.viewers.panes.arrangement import PANES
from tcw.viewers.reader import whole
from tcw.viewers.recording import Recording
from tcw.viewers.summary.ranks.collectives import started
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.processes import report
from tcw.viewers.text.sections import SECTIONS
from tcw.viewers.words import NOT_IN_LOG
from tcw.workbench.cli.main import main
from tcw.workbench.request.folders import processes_in
from tests.no_torch import schemas
from tests.no_torch.torch_logs.samples import FOLDER, VERSIONS, entry, log


def recorded(data: bytes, chunk: int = 1 << 20) -> Recording:
    decoder = LogDecoder()
    parts = (data[at : at + chunk] for at in range(0, len(data), chunk))
    records = [one for part in parts for one in decoder.feed(part)]
    return Recording([*records, *decoder.finish()], decoder.losses)


@pytest.fixture(params=VERSIONS)
def recording(request: pytest.FixtureRequest) -> Recording:
    return recorded(log(request.param))


def test_compiles_breaks_and_recompiles(recording: Recording) -> None:
    ends = {end.compile_id: end.status for end in recording.all(FrameEnd)}
    assert ends == dict.fromkeys(("0/0", "1/0", "0/1", "1/1", "0/2"), "compiled")
    resumed = [start.resumes_at for start in recording.all(FrameStart) if start.compile_id == "1/0"]
    assert resumed[0] == 13
    breaks = recording.all(GraphBreak)
    assert {(one.gb, one.location.line, one.location.function) for one in breaks} == {
        ("GB0170", 13, "forward")
    }
    assert breaks[0].location.file == "/home/user/train.py"
    assert breaks[0].source_line.strip() == "if h.sum() > 100:"
    failed = [(one.compile_id, one.failed[0].name) for one in recording.all(Recompile)]
    assert failed == [("0/1", "x.size(0)"), ("1/1", "h.size(0)"), ("0/2", "scale")]
    assert recording.all(Recompile)[0].failed[0].expected == "4"
    assert recording.all(Recompile)[0].failed[0].seen == "6"
    assert not recording.losses


def test_graphs_of_every_kind(recording: Recording) -> None:
    kinds = {graph.id: graph.kind for graph in recording.graphs.values()}
    for name, kind in (("", "captured"), ("/joint", "joint"), ("/forward", "forward"),
                       ("/backward", "backward"), ("/forward/lowered", "lowered"),
                       ("/backward/lowered", "lowered")):  # fmt: skip
        assert kinds[f"0/0{name}"] == kind
    captured = recording.graphs["0/0"]
    assert [node.target for node in captured.nodes if node.op == "call_function"][:2] == [
        "torch.nn.functional.linear", "torch.relu",
    ]  # fmt: skip
    relu = next(node for node in captured.nodes if node.target == "torch.relu")
    assert relu.location is not None
    assert relu.location.line == 12
    assert relu.value is not None
    assert relu.value.shape == (4, 16)


def test_guards_kernels_phases_and_caches(recording: Recording) -> None:
    guards = recording.all(Guards)
    assert all(guard.guards and guard.counted and guard.check_us for guard in guards)
    x = next(guard for guard in guards[0].guards if guard.source == "L['x']")
    assert x.value == "f32[4, 8] stride (8, 1) cpu"
    assert {size.source for size in guards[2].dynamic} == {"L['x'].size()[0]"}
    kernels = recording.all(Kernel)
    assert {kernel.language for kernel in kernels} == {"cpp", "aten"}
    assert all(recording.text(kernel.text) for kernel in kernels if kernel.language == "cpp")
    assert {phase.name for phase in recording.all(Phase)} >= {"dynamo", "backend_compile"}
    assert {(lookup.cache, lookup.verdict) for lookup in recording.all(CacheLookup)} == {
        ("aot autograd", "miss"), ("fx graph", "miss"),
    }  # fmt: skip
    machine = recording.environment
    assert isinstance(machine, Environment)
    assert machine.torch.startswith("2.1")


def test_however_the_bytes_arrive(recording: Recording) -> None:
    version = "2.11" if "2.11" in (recording.environment or Environment(torch="")).torch else "2.13"
    assert recorded(log(version), chunk=777).records == recording.records


def test_packed_rotated_and_in_parts(tmp_path: Path) -> None:
    data = log("2.13")
    name = "dedicated_log_torch_trace_rank_3_abc.log"
    middle = data.index(b"\nV", len(data) // 2) + 1
    (tmp_path / f"{name}.1.gz").write_bytes(gzip.compress(data[:middle]))
    (tmp_path / name).write_bytes(data[middle:])
    (file,) = logs(tmp_path)
    assert file.name == name
    trace = read_trace(file)
    assert len(trace.records) == len(recorded(data).records)
    start = Recording(trace.records).start
    assert start is not None
    assert start.rank == 3
    whole_file = tmp_path / "other" / name
    whole_file.parent.mkdir()
    whole_file.write_bytes(data)
    assert digest_log(file).digest == digest_log(whole_file).digest
    assert digest_log(file).digest != digest_log(FOLDER / "torch-2.11.log.gz").digest


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = tmp_path / "x.log.gz"
    packed = gzip.compress(log("2.13"))
    file.write_bytes(packed[: len(packed) // 2])
    trace = read_trace(file)
    assert any(isinstance(record, GraphBreak) for record in trace.records)
    assert trace.losses.archive
    assert not read_trace(FOLDER / "torch-2.13.log.gz").losses


def test_what_a_log_does_not_hold_is_never_none() -> None:
    recording = recorded(log("2.13"))
    text = to_text(explain(recording, 100, 200, SECTIONS), 100)
    for name in ("fusion", "memory", "autograd", "output", "steps", "decisions"):
        assert f"{name}  {NOT_IN_LOG}" in text
    view = whole(recording).view
    view.compile_id = "0/0"
    for pane in ("fusion", "memory", "autograd", "output", "profile", "locals", "cache", "loops"):
        rows = " ".join(row.text for row in PANES[pane](view, 80).rows)
        assert rows.split() == NOT_IN_LOG.split(), pane


def test_collectives_and_an_error() -> None:
    frame = '"frame_id": 0, "frame_compile_id": 0, "attempt": 0'
    stack = '[{"line": 5, "name": "f", "filename": 0, "loc": "def f(x):"}]'
    data = entry('"str": ["/home/me/model.py", 0]') + entry(
        f'"dynamo_start": {{"stack": {stack}}}, "rank": 1, {frame}'
    )
    name = '"artifact": {"name": "inductor_collective_schedule", "encoding": "json"}'
    data += entry(f"{name}, {frame}", '[\n"all_reduce",\n"all_gather"\n]')
    metrics = '{"compile_id": "0/0", "fail_type": "ValueError", "fail_reason": "no"}'
    data += entry(f'"compilation_metrics": {metrics}, {frame}')
    recording = recorded(data.encode())
    (schedule,) = recording.all(Collectives)
    assert schedule.operations == ("all_reduce", "all_gather")
    assert recording.failure is not None
    assert recording.failure.type == "ValueError"
    assert recording.start is not None
    assert recording.start.rank == 1
    assert recording.start.settings.file == "/home/me/model.py"


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        (
            "0/0: expected type of 'kw['kv'].layers[0].keys' to be <class 'torch.Tensor'>, but "
            "found <class 'NoneType'>",
            ("L['kw']['kv'].layers[0].keys", "kw['kv'].layers[0].keys", "a tensor", "NoneType"),
        ),
        (
            "0/0: expected type of 'x' to be a tensor type, ' but found <class 'int'>",
            ("L['x']", "x", "a tensor", "int"),
        ),
        (
            "0/0: tensor 'x' requires_grad mismatch. expected requires_grad=1",
            ("L['x']", "x.requires_grad", "True", "False"),
        ),
        (
            "0/0: ___as_tensor(temperature).item() == 0.75  # (unknown source, please file a bug)",
            ("L['temperature']", "temperature", "0.75", ""),
        ),
    ],
)
def test_reasons_to_recompile(reason: str, wanted: tuple[str, ...]) -> None:
    """In the words of torch 2.14, of 2.13 and of 2.11."""
    (failed,) = recompile([reason], LogSources(), "0/1", None, {}, CompileNames()).failed
    assert (failed.source, failed.name, failed.expected, failed.seen) == wanted
    assert failed.entry == "0/0"


def test_a_break_after_which_the_frame_is_given_up() -> None:
    text = (
        "Graph break in user code at /home/me/model.py:7\n"
        "Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and "
        "falling back to eager. Graph break encountered:\n\ncopy.deepcopy()\n"
        "  Explanation: Dynamo does not support copy.deepcopy()\n"
        "  Hint: Avoid calling copy.deepcopy()\n\n"
        "  Developer debug context: copy.deepcopy(x)\n\n"
        " For more details about this graph break, please visit: "
        "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0179.html\n\n"
        'User code traceback:\n  File "/home/me/model.py", line 7, in f\n    copy.deepcopy(x)\n'
    )
    found = graph_break(text, LogSources(), "0/0", 0, None, 0)
    assert (found.outcome, found.gb, found.type) == ("skip-frame", "GB0179", "copy.deepcopy()")
    assert found.location.line == 7


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "size"),
    [
        ("f32[8, s0][64, 1]cuda:0", (8, "s0"), "float32", None),
        ("b8[][]cpu", (), "bool", 1),
        ("bf16[3, 4]", (3, 4), "bfloat16", 24),
    ],
)
def test_annotations(text: str, shape: tuple[object, ...], dtype: str, size: int | None) -> None:
    found = tensor_meta(text)
    assert found is not None
    assert (found.shape, found.dtype, found.bytes) == (shape, dtype, size)
    assert tensor_meta("Sym(s0)") is None


def test_statements_of_every_form() -> None:
    text = """
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu", s0: "Sym(s0)"):
        l_x_ = L_x_
        # File: /home/me/m.py:3 in f, code: y = x + 1  # one
        y: "f32[4][1]cpu" = l_x_ + 1
        z = y.view(2, 2);  y = None
        z += 1;  z_1 = z;  z = None
        w = self.weight
        l_x_[0] = w;  setitem = l_x_;  w = setitem = None
        exp = math_exp(s0)
        return (z_1, exp)
"""
    graph = parse(text)
    assert [(node.name, node.op, node.target, node.inputs) for node in graph.nodes] == [
        ("l_x_", "placeholder", "L_x_", ()),
        ("s0", "placeholder", "s0", ()),
        ("y", "call_function", "operator.add", ("l_x_",)),
        ("z", "call_method", "view", ("y",)),
        ("z_1", "call_function", "operator.iadd", ("z",)),
        ("w", "get_attr", "weight", ()),
        ("setitem", "call_function", "operator.setitem", ("l_x_", "w")),
        ("exp", "call_function", "math.exp", ("s0",)),
        ("output", "output", "output", ("z_1", "exp")),
    ]
    assert graph.lines == {("/home/me/m.py", 3): "y = x + 1  # one"}


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(FOLDER / "torch-2.13.log.gz")

    def said(*arguments: str) -> str:
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    assert "branch on tensor data" in said("explain", file, "--show", "breaks")
    assert json.loads(said("explain", file, "--json"))
    assert "2 processes compiled" in said("explain", str(FOLDER))
    assert "torch 2.11.0" in said("diff", str(FOLDER / "torch-2.11.log.gz"), file)
    page = tmp_path / "log.html"
    said("export", file, "-o", str(page))
    assert "not in this log" in page.read_text()


def test_a_log_is_never_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "evil.log"
    file.write_text("import os\nopen('ran', 'w')\n")
    assert main(["explain", str(file)]) == 2
    assert "is not a tcw trace" in capsys.readouterr().err


def test_packed_with_zstd(tmp_path: Path) -> None:
    try:
        from compression.zstd import compress  # of Python 3.14
    except ImportError:
        compress = pytest.importorskip("zstandard").ZstdCompressor().compress
    data = log("2.13")
    packed = compress(data)
    name = "dedicated_log_torch_trace_rank_3_abc.log"
    (tmp_path / f"{name}.zst").write_bytes(packed)
    (file,) = logs(tmp_path)
    assert len(read_trace(file).records) == len(recorded(data).records)
    file.write_bytes(packed[: len(packed) // 2])
    cut = read_trace(file)
    assert cut.losses.archive
    assert any(isinstance(record, GraphBreak) for record in cut.records)


def test_a_folder_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank, version in enumerate(("2.13", "2.13", "2.11")):
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_bytes(log(version))
    assert main(["explain", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, schemas.FOLDER)
    first, second, other = found["processes"]
    assert [one["name"] for one in found["processes"]] == ["rank 0", "rank 1", "rank 2"]
    assert (first["same_as"], second["same_as"], other["same_as"]) == ("", "rank 0", "")
    assert second["report"] is None
    assert "fusion" in first["report"]["not_in_log"]
    difference = found["first_difference"]
    assert difference["sides"][0]["ranks"] == [2]
    assert difference["kind"]


@pytest.mark.parametrize("option", ["--train", "--engine=tcw", "--trace=x.tcw", "--until=capture"])
def test_how_to_record_is_no_option_of_a_log(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what in (FOLDER / "torch-2.13.log.gz", FOLDER):
        assert main(["explain", str(what), option]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"{option.partition('=')[0]} says how to record" in said


def test_a_log_of_a_process_that_was_killed_says_so(tmp_path: Path) -> None:
    data = log("2.13")
    at = data.index(b"compilation_metrics")
    cut = data[: data.rindex(b"\nV", 0, at) + 1]
    text = to_text(explain(recorded(cut), 100), 100)
    assert "Read from a log that is cut off: the log ends within the compile of 0/0" in text
    for rank, content in enumerate((data, cut)):
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_bytes(content)
    several = processes_in(tmp_path)
    said = to_text(report(several, 100, 60, "logs"), 100)
    (row,) = (part for part in said.split("\n  ") if part.startswith("rank 1  train.py"))
    assert " ".join(row.split()).partition("·")[2].startswith(" killed, or cut")
    assert [one.complete for one in several.ranks] == [True, False]


def test_a_schedule_is_of_the_graph_that_was_written_last() -> None:
    frame = '"frame_id": 0, "frame_compile_id": 0, "attempt": 0'
    graph = """
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[4, 8][8, 1]cpu"):
        # File: /home/me/model.py:7 in f, code: x = all_reduce(x)
        all_reduce: "f32[4, 8][8, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(arg0_1, \
'sum', '0')
        wait: "f32[4, 8][8, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
        return (wait,)
""".replace("\\\n", "")
    schedule = '["torch.ops._c10d_functional.all_reduce.default"]'
    stack = '[{"line": 5, "name": "f", "filename": 0, "loc": "def f(x):"}]'
    data = entry('"str": ["/home/me/model.py", 0]')
    data += entry(f'"dynamo_start": {{"stack": {stack}}}, {frame}')
    data += entry(f'"aot_inference_graph": {{}}, {frame}', graph)
    lowered = '"artifact": {"name": "inductor_post_grad_graph", "encoding": "string"}'
    data += entry(f"{lowered}, {frame}", graph)
    data += entry(f'"inductor_output_code": {{}}, {frame}', "def call(args):\n    pass\n")
    name = '"artifact": {"name": "inductor_collective_schedule", "encoding": "json"}'
    data += entry(f"{name}, {frame}", schedule)
    recording = recorded(data.encode())
    (one,) = started(recording)
    assert (one.operation, one.graph) == ("all_reduce", "0/0/inference")
    assert one.words == "all_reduce f32 4×8"
    assert one.place is not None
    assert one.place.line == 7
    text = to_text(explain(recording, 100, 60, ("collectives",)), 100)
    assert "collectives  1 in graphs" in text
    assert f"overlap {NOT_IN_LOG}" in text
    assert f"outside graphs and by DDP {NOT_IN_LOG}" in text


def test_cuda_graphs() -> None:
    """Recordings are timed; of skips, a compile's account has the last."""

    def event(mark: str, microseconds: int, **more: object) -> str:
        facts = {"name": "CUDAGraphNode.record", "ph": mark, "ts": microseconds, "tid": 0}
        return entry('"chromium_event": {}', json.dumps({**facts, "args": more}))

    message = (
        "skipping cudagraphs due to mutated inputs (1 instances). Found from : \n "
        '  File "/home/me/train.py", line 7, in forward\n    x.add_(1)\n'
    )
    metrics = {"compile_id": "0/0", "cudagraph_skip_reason": message}
    log = "".join(
        [
            event("B", 1_000_000, compile_id="1/0", is_backward=True),
            event("E", 1_250_000, compile_id="1/0"),
            event("B", 2_000_000, compile_id="1/0", is_backward=False),
            event("E", 2_500_000, compile_id="1/0"),
            entry(f'"compilation_metrics": {json.dumps(metrics)}, "frame_id": 0'),
        ]
    )
    found = recorded(log.encode())
    backward, forward = found.all(CudagraphRecording)
    assert (backward.graph, backward.seconds, backward.again) == ("1/0/backward", 0.25, None)
    assert (forward.graph, forward.seconds, forward.compile_id) == ("1/0/inference", 0.5, "1/0")
    (skip,) = found.all(CudagraphSkip)
    assert (skip.reason, skip.compile_id) == ("mutated inputs (1 instances)", "0/0")
    assert skip.location is not None
    assert (skip.location.file, skip.location.line) == ("/home/me/train.py", 7)
    text = to_text(explain(found, show=("cudagraphs",), height=200), 100)
    assert "CUDA graphs recorded 2 times · 750 ms" in text
    assert "why again, what calls skipped: not in this log" in text
    assert "no CUDA graph: mutated inputs (1 instances)" in text


def test_a_size_that_a_line_specialises_has_that_line() -> None:
    frame = '"frame_id": 0, "frame_compile_id": 0, "attempt": 0'
    stack = '[{"line": 5, "name": "f", "filename": 0, "loc": "for _ in range(x.shape[0]):"}]'
    symbol = '"symbol": "s77", "val": "4", "vr": "[2, int_oo]", "source": "L[\'x\'].size()[0]"'
    data = entry('"str": ["/home/me/model.py", 0]')
    data += entry(f'"dynamo_start": {{"stack": {stack}}}, {frame}')
    data += entry(f'"create_symbol": {{{symbol}}}, {frame}')
    constant = f'"symbol": "s77", "value": "4", "user_stack": {stack}'
    data += entry(f'"symbolic_shape_specialization": {{{constant}}}, {frame}')
    data += entry(f'"dynamo_cpp_guards_str": {{}}, {frame}', "TREE_GUARD_MANAGER:")
    (guards,) = recorded(data.encode()).all(Guards)
    assert guards.dynamic == ()
    (size,) = guards.specialised
    assert size.location is not None
    assert (size.name, size.location.file, size.location.line) == (
        "x.size(0)", "/home/me/model.py", 5,
    )  # fmt: skip
