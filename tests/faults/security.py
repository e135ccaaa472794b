"""Faults in what keeps a stranger's file, page or folder from doing harm."""

from __future__ import annotations

from tests.faults.fault import Fault

FAULTS = (
    Fault(
        "the group may write to the cache folder",
        "compiler/cache_folder.py",
        "stat.S_IMODE(found.st_mode) & 0o077",
        "stat.S_IMODE(found.st_mode) & 0o007",
        ("tests/no_torch/test_cache_folder.py",),
    ),
    Fault(
        "any file that looks like JSON records is overwritten as a trace",
        "compiler/trace/output_file.py",
        "return match is not None and match[1] in _TAGS",
        "return match is not None",
        ("tests/no_torch/trace/test_output_file.py",),
    ),
    Fault(
        "an origin that only starts with ours is accepted",
        "workbench/web/connections.py",
        'any(origin != f"http://{hosts[0].lower()}" for',
        'any(not origin.startswith(f"http://{hosts[0].lower()}") for',
        ("tests/no_torch/cli/test_serve_visitors.py",),
    ),
    Fault(
        "a page's token opens two sockets",
        "workbench/web/connections.py",
        "self._tokens.pop(token, 0.0)",
        "self._tokens.get(token, 0.0)",
        ("tests/no_torch/cli/test_serve_visitors.py", "tests/no_torch/cli/test_serve_pages.py"),
    ),
    Fault(
        "a project sets torch_settings, spelled with an underscore",
        "workbench/request/config.py",
        "if _dashed(key) in COMMAND_LINE_ONLY:",
        "if key in COMMAND_LINE_ONLY:",
        ("tests/no_torch/cli/test_config.py",),
    ),
    Fault(
        "a patch's lines end at form feeds",
        "compiler/protocol/edits/patch.py",
        r'return [line for line in re.split(r"(?<=\n)", text) if line]',
        "return text.splitlines(keepends=True)",
        ("tests/no_torch/protocol/edits/test_patch.py",),
    ),
    Fault(
        "JSON has bidirectional overrides as they are",
        "viewers/json_text.py",
        "if plain(character) != character or not can_encode(character, encoding):",
        "if not can_encode(character, encoding):",
        ("tests/no_torch/viewers/test_json_text.py",),
    ),
    Fault(
        "a page's message may have further elements, of any depth",
        "workbench/web/session.py",
        "array_like=True, forbid_unknown_fields=True, tag",
        "array_like=True, tag",
        ("tests/no_torch/cli/test_serve_pages.py",),
    ),
    Fault(
        "a link counts as a private cache folder",
        "compiler/cache_folder.py",
        "found = os.lstat(path)",
        "found = os.stat(path)",
        ("tests/no_torch/test_cache_folder.py",),
    ),
    Fault(
        "a kernel whose name begins well names a file in another folder",
        "workbench/cli/repro.py",
        r're.fullmatch(r"\w{1,64}", kernel, re.ASCII)',
        r're.match(r"\w{1,64}", kernel, re.ASCII)',
        ("tests/no_torch/cli/test_repro.py",),
    ),
    Fault(
        "an index of a record has no bound",
        "compiler/trace/records/base.py",
        "Index = Annotated[int, Meta(ge=0, le=10_000_000)]",
        "Index = Annotated[int, Meta(ge=0, le=MOST)]",
        ("tests/no_torch/test_schemas.py",),
    ),
)
