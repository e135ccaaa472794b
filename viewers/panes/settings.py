"""The settings of a run as toggles: each choice is a row; choosing another compiles again."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from tcw.compiler.trace.records import Settings
from tcw.viewers.kit.cells import pad
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row
from tcw.viewers.panes.targets import ToInputs, ToSetting
from tcw.viewers.panes.view import View


@dataclass(frozen=True)
class Toggle:
    """One choice of one setting."""

    name: str
    """`mode`."""
    words: str
    """`max-autotune`."""
    settings: Settings
    """The settings with it."""

    @property
    def because(self) -> str:
        """The difference, as in `Run.because`: `mode max-autotune`."""
        return f"{self.name} {self.words}"


Choices = tuple[tuple[str, dict[str, object]], ...]

_ARCHS: Choices = tuple(
    (f"cuda {arch}, predicted", {"device": "cuda", "arch": arch})
    for arch in ("sm_80", "sm_90", "sm_100")
)
_CHOICES: tuple[tuple[str, Choices], ...] = (
    ("engine", (("inductor", {"engine": "inductor"}), ("tcw", {"engine": "tcw"}))),
    (
        "mode",
        tuple(
            (name or "default", {"mode": name})
            for name in ("", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
        ),
    ),
    (
        "dynamic",
        (("by torch", {"dynamic": None}), ("on", {"dynamic": True}), ("off", {"dynamic": False})),
    ),
    ("fullgraph", (("off", {"fullgraph": False}), ("on", {"fullgraph": True}))),
    (
        "autograd",
        tuple((mode, {"grad": mode}) for mode in ("grad", "no-grad", "inference", "train")),
    ),
    ("device", (("cpu", {"device": "cpu", "arch": ""}), *_ARCHS)),
)


def settings_of(view: View) -> Settings | None:
    """The settings of the current run; whether it was profiled does not change the compile."""
    settings = view.recording.run_settings
    return structs.replace(settings, profile=False) if settings is not None else None


def toggles(settings: Settings) -> dict[str, list[Toggle]]:
    """Name of a setting -> its choices."""
    found = {
        name: [
            Toggle(name, words, structs.replace(settings, **changes)) for words, changes in choices
        ]
        for name, choices in _CHOICES
    }
    if len(settings.inputs) > 1:
        found["inputs"] = [
            Toggle("inputs", one, structs.replace(settings, inputs=(one,)))
            for one in settings.inputs
        ]
    return found


def with_inputs(settings: Settings, words: str) -> Toggle:
    """Other inputs: `f32[8,64]`, several calls divided by `;`."""
    sets = tuple(part.strip() for part in words.split(";") if part.strip())
    return Toggle("inputs", words.strip(), structs.replace(settings, inputs=sets))


def content(view: View, width: int) -> Content:
    settings = settings_of(view)
    if settings is None:
        return Content("settings", rows=empty(width, "no settings were recorded"))
    rows: list[Row] = []
    start = ""
    for name, choices in toggles(settings).items():
        for index, toggle in enumerate(choices):
            now = toggle.settings == settings
            rows.append(
                text_row(
                    (pad(f" {name}" if not index else "", 12), "dim"),
                    ("● " if now else "○ ", "accent" if now else "faint"),
                    (toggle.words, "strong" if now else "text"),
                    at=ToSetting(name, index),
                )
            )
            start = start or (str(ToSetting(name, index)) if now else "")
    inputs = "; ".join(settings.inputs) or "those of the file"
    rows += [
        text_row(
            (pad(" inputs", 12), "dim"),
            ("● ", "accent"),
            (inputs, "strong"),
            at=ToInputs(),
            right=(("⏎ others ", "faint"),),
        ),
        BLANK,
    ]
    said = "⏎ compiles again with it, and shows what changes" if view.driven else "as recorded"
    return Content("settings", right=((said, "dim"),), rows=rows, start=start)
