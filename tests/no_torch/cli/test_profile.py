"""`tcw profile`: what its options ask of the worker, and where its results go."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tcw.compiler.trace.records import AnyRecord, KernelPrecision, Numerics
from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tests.no_torch import profiles, traces
from tests.no_torch.cli.test_commands import Client, client, model  # noqa: F401


@pytest.fixture
def profiled(client: Client) -> Client:  # noqa: F811
    client.records = profiles.masked_attention()
    return client


Said = Callable[[], tuple[str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def read() -> tuple[str, str]:
        found = capsys.readouterr()
        return found.out, found.err

    return read


def test_the_settings_ask_for_a_profile(profiled: Client, model: Path) -> None:  # noqa: F811
    assert main(["profile", "model.py"]) == codes.OK
    settings = profiled.settings
    assert settings is not None
    assert settings.profile
    assert (settings.profiled_call, settings.rounds, settings.verify) == (1, 100, False)
    assert (settings.engine, settings.grad, settings.until) == ("inductor", "grad", "run")


def test_every_option_reaches_the_worker(profiled: Client, model: Path) -> None:  # noqa: F811
    options = "--engine both --train --call 2 --rounds 9 --verify --dynamic --fullgraph --cached"
    assert main(["profile", "model.py", *options.split()]) == codes.OK
    settings = profiled.settings
    assert settings is not None
    assert (settings.engine, settings.grad, settings.profiled_call) == ("both", "train", 2)
    assert (settings.rounds, settings.verify, settings.cached) == (9, True, True)
    assert (settings.dynamic, settings.fullgraph) == (True, True)


def test_the_answer_is_on_stdout_alone(profiled: Client, model: Path, said: Said) -> None:  # noqa: F811
    assert main(["profile", "model.py", "--sort", "line", "--top", "2"]) == codes.OK
    out, error = said()
    assert "attention" in out
    assert "account" in out
    assert error == ""


def test_json_is_one_object(profiled: Client, model: Path, said: Said) -> None:  # noqa: F811
    assert main(["profile", "model.py", "--json"]) == codes.OK
    assert isinstance(json.loads(said()[0]), dict)


def test_a_round_for_trace_viewers(profiled: Client, model: Path, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "call.json"
    assert main(["profile", "model.py", "--chrome", str(file)]) == codes.OK
    assert json.loads(file.read_text())["traceEvents"]


def test_a_folder_that_is_not_there_is_said_first(
    profiled: Client,
    model: Path,  # noqa: F811
    said: Said,
) -> None:
    assert main(["profile", "model.py", "--chrome", "none/call.json"]) == codes.USAGE
    assert profiled.settings is None
    assert "no folder none" in said()[1]


@pytest.mark.parametrize(
    "options", [["--call", "0"], ["--rounds", "2"], ["--sort", "size"], ["--top", "0"]]
)
def test_what_cannot_be_is_usage(options: list[str], profiled: Client, model: Path) -> None:  # noqa: F811
    assert main(["profile", "model.py", *options]) == codes.USAGE
    assert profiled.settings is None


def test_a_model_that_fails_is_told_as_by_explain(
    client: Client,  # noqa: F811
    model: Path,  # noqa: F811
    said: Said,
) -> None:
    client.records = traces.failed()
    assert main(["profile", "model.py"]) == codes.MODEL_FAILED
    assert "failed" in said()[0]


def test_its_help_has_examples(said: Said) -> None:
    assert main(["profile", "--help"]) == codes.OK
    assert "tcw profile model.py --train --engine both" in said()[0]


RIGHT_KERNELS = [
    record
    for record in profiles.wrong_kernel()
    if not isinstance(record, KernelPrecision) or record.within is not False
]


@pytest.mark.parametrize(
    ("option", "within", "kernels", "code"),
    [
        ((), False, RIGHT_KERNELS, codes.OK),
        (("--verify",), True, RIGHT_KERNELS, codes.OK),
        (("--verify",), None, RIGHT_KERNELS, codes.OK),
        (("--verify",), False, RIGHT_KERNELS, codes.FINDING),
        (("--verify",), True, profiles.wrong_kernel(), codes.FINDING),
    ],
)
def test_a_wrong_result_is_an_exit_code_if_results_are_asked_for(
    client: Client,  # noqa: F811
    model: Path,  # noqa: F811
    said: Said,
    option: tuple[str, ...],
    within: bool | None,
    kernels: list[AnyRecord],
    code: int,
) -> None:
    numerics = Numerics(compared=1, max_abs=0.5, max_rel=1.0, within=within)
    client.records = [*kernels[:-1], numerics, kernels[-1]]
    assert main(["profile", "model.py", *option]) == code
    (row,) = (line for line in said()[0].splitlines() if line.startswith("precision"))
    assert ("but the results of the whole call" in row) is (within is False)
