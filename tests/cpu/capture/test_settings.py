"""torch settings that a file changes are recorded, those of the recording are not."""

from __future__ import annotations

from pathlib import Path

import torch
from torch._dynamo import config as dynamo
from torch._inductor import config as inductor

from tcw.compiler.capture import settings
from tcw.compiler.capture.settings import HOOK, record_changes
from tcw.compiler.trace.records import TorchSettings
from tcw.viewers.recording import Recording
from tests.cpu.command_line import tcw
from tests.cpu.recorded import record


def test_changes_are_recorded_by_name() -> None:
    with (
        record([HOOK], torch_settings=("torch._dynamo.config.recompile_limit = 3",)) as recorded,
        inductor.patch({"cpp.simdlen": 0}),
        dynamo.patch(capture_scalar_outputs=True, recompile_limit=3),
    ):
        record_changes(recorded.recorder)
    assert [torch_settings.changed for torch_settings in recorded.all(TorchSettings)] == [
        {
            "torch._dynamo.config.capture_scalar_outputs": "True",
            "torch._inductor.config.cpp.simdlen": "0",
        }
    ]


def test_no_change_is_no_record() -> None:
    with record([HOOK]) as recorded:
        record_changes(recorded.recorder)
    assert not recorded.all(TorchSettings)


def test_what_a_recording_sets_to_end_before_the_build_is_not_the_files(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\nmodel = torch.nn.ReLU()\nexample_inputs = (torch.randn(4),)\n"
    )
    done = tcw(tmp_path, "explain", "model.py", "--until", "codegen", "--trace", "a.tcw")
    assert done.code == 0, done.err
    assert not Recording.open(tmp_path / "a.tcw").all(TorchSettings)


def test_of_a_model_file(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "import torch\nimport torch._inductor.config\n"
        "torch._inductor.config.epilogue_fusion = False\n"
        "torch.set_float32_matmul_precision('medium')\n"
        "model = torch.nn.ReLU()\nexample_inputs = (torch.randn(4),)\n"
    )
    trace = tmp_path / "a.tcw"
    done = tcw(tmp_path, "explain", "model.py", "--until", "capture", "--trace", str(trace))
    torch.set_float32_matmul_precision("highest")
    assert done.code == 0, done.err
    assert [
        torch_settings.changed for torch_settings in Recording.open(trace).all(TorchSettings)
    ] == [
        {
            "torch._inductor.config.epilogue_fusion": "False",
            "torch.get_float32_matmul_precision()": "'medium'",
        }
    ]


def test_equal_sets_do_not_differ() -> None:
    """8 and 0 collide in a set's table, so that equal sets are written in another order."""
    one, other = {8, 0}, {0, 8}
    assert repr(one) != repr(other)
    assert not settings._differs({"names": one}, {"names": other})
    assert settings._differs(one, {8, 1})
    assert settings._text([{"b", "a"}, ({8, 0},)]) == "[{'a', 'b'}, ({0, 8},)]"
