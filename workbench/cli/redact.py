"""`tcw export --redact`: a copy of a trace for people who cannot send code."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from compiler.output_file import TRACE
from compiler.trace.reader import read_trace
from compiler.trace.records import Warned
from compiler.trace.redaction import redacted
from workbench.cli import codes
from workbench.cli.files import reading
from workbench.cli.output import say
from workbench.cli.outputs import Outputs


def redact(outputs: Outputs, file: Path, output: Path) -> int:
    """Write the copy and say what was taken out. Returns the exit code; raises `click.UsageError`
    for a file that is not a trace, and for an output that may not be written."""
    if output.exists() and output.samefile(file):
        raise click.UsageError(f"--output {output} is the trace itself")
    outputs.expect("--output", output, TRACE)
    with reading(file):
        records = list(redacted(read_trace(file).records))
    encode = msgspec.json.Encoder().encode
    text = "".join(encode(one).decode() + "\n" for one in records)
    if outputs.write("--output", output, text, TRACE):
        told = next(one.message for one in records if isinstance(one, Warned))
        say(f"{output}: {told}")
    return outputs.code(codes.OK)
