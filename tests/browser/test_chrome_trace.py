"""The Chrome trace as a browser's own parser reads it: what a viewer of the format relies on."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from tcw.viewers.chrome_trace import chrome_trace
from tcw.viewers.recording import Recording
from tests.browser.conftest import Dump
from tests.no_torch import profiles

READER = """
const trace = JSON.parse(document.getElementById("trace").textContent);
const faults = [], tracks = new Map(), processes = new Set();
for (const one of trace.traceEvents) {
  if (one.ph === "M") { if (one.name === "process_name") processes.add(one.pid); continue; }
  if (one.ph !== "X") faults.push(`phase ${one.ph}`);
  for (const key of ["ts", "dur", "pid", "tid"])
    if (typeof one[key] !== "number" || !(one[key] >= 0)) faults.push(`${one.name}: ${key}`);
  if (!one.name || typeof one.cat !== "string") faults.push("no name");
  const track = `${one.pid}/${one.tid}`;
  tracks.set(track, [...(tracks.get(track) ?? []), one]);
}
let slices = 0;
for (const [track, found] of tracks) {
  if (!processes.has(found[0].pid)) faults.push(`${track}: a process without a name`);
  found.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const open = [];
  for (const one of found) {
    slices += 1;
    while (open.length && open.at(-1) <= one.ts + 1e-6) open.pop();
    const end = one.ts + one.dur;
    if (open.length && end > open.at(-1) + 1e-6) faults.push(`${one.name} outlasts its parent`);
    if (open.length > 1) faults.push(`${one.name} overlaps a slice beside it`);
    open.push(end);
  }
}
document.body.textContent = `${slices} slices on ${tracks.size} tracks; ` +
  (faults.length ? faults.join("; ") : "no fault");
"""


@pytest.mark.parametrize("name", ["block_profile", "training", "bert_on_a_gpu"])
def test_slices_nest_and_none_overlap(name: str, tmp_path: Path, dump: Dump) -> None:
    made = chrome_trace(Recording(profiles.EVERY[name]()))
    slices = [one for one in made["traceEvents"] if one["ph"] == "X"]
    page = tmp_path / "page.html"
    text = json.dumps(made).replace("<", "\\u003c")
    page.write_text(
        f'<body></body><script type="application/json" id="trace">{text}</script>'
        f"<script>{READER}</script>",
        encoding="utf-8",
    )
    said = html.unescape(dump(page))
    assert f"{len(slices)} slices on 2 tracks; no fault" in said
    places = [one["name"] for one in slices if one["cat"] != "call"]
    assert all(".py:" in place or "tcw's loss" in place or "autograd" in place for place in places)
