"""Advice on programs, followed: how many graphs torch compiles then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.viewers.summary import summarise
from tests.cpu.capture.programs import Program, program

pytestmark = pytest.mark.filterwarnings("ignore")


def check(folder: Path, text: str, kind: str = "recompile") -> tuple[Program, list[int | None]]:
    """The program, and the graphs with each fix of its first finding of this kind."""
    made = program(folder, text)
    finding = next(one for one in made.findings if one.kind == kind)
    return made, made.fixes(finding)


LAYERS = """
import torch

class Layer(torch.nn.Module):
    def __init__(self, place):
        super().__init__()
        self.place = place
        self.scale = torch.nn.Linear(4, 4)

    def forward(self, x, states):
        states[self.place] = x.sin()
        return self.scale(x) * states[self.place]

layers = [Layer(number) for number in range(10)]
for layer in layers:
    layer.compile()
states = [torch.zeros(3, 4) for _ in range(10)]
x = torch.ones(3, 4)
with torch.no_grad():
    for layer in layers:
        x = layer(x, states)
"""


def test_a_list_that_a_module_indexes_by_its_own_number_becomes_a_tensor(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, LAYERS)
    assert made.compiles == 8
    assert fixes == [2, None, 10], "stacked; the item itself, in words; a higher limit"


STEPS = """
import torch

@torch.compile
def ramp(x, steps):
    return x.sum() + torch.arange(steps, dtype=torch.float32).sqrt().sum()

for steps in (12, 9, 30):
    ramp(torch.ones(4), steps)
"""


def test_an_integer_that_only_becomes_a_size_is_a_symbol(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, STEPS)
    assert (made.compiles, fixes) == (2, [1])


HELD = """
import dataclasses
import torch

@dataclasses.dataclass
class State:
    value: torch.Tensor
    seen: int

@torch.compile
def advance(state):
    return State(state.value.cos(), state.seen + 1)

state = State(torch.ones(4), 3)
for _ in range(4):
    state = advance(state)
"""


def test_an_integer_of_an_object_that_is_passed_is_a_symbol(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, HELD)
    assert (made.compiles, fixes) == (2, [1])


WEIGHTS = """
import torch

@torch.compile(fullgraph=True)
def decayed(weight):
    return (weight * 0.5).sum() + weight.shape[0]

weights = [torch.nn.Parameter(torch.ones(3, width)) for width in range(2, 12)]
for weight in weights:
    decayed(weight)
"""


def test_parameters_of_many_sizes(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, WEIGHTS)
    assert (made.compiles, fixes) == (8, [2])
    (change,) = {one.source.change.seen for one in made.findings if one.kind == "recompile"}
    assert change.isdecimal()


def test_the_limit_that_stops_a_program_is_a_finding(tmp_path: Path) -> None:
    made = program(tmp_path, WEIGHTS)
    first = made.findings[0]
    assert (first.kind, first.cost, first.source.by_limit) == ("fallback", "stops", True)
    assert made.fixes(first)[0] == 2


BRANCH = """
import torch

@torch.compile
def halved(x):
    if x.shape[0] == 5:
        return x / 2
    return x.exp()

for rows in (3, 4, 5, 6):
    x = torch.ones(rows, 2)
    halved(x)
"""


def test_a_size_that_the_code_compares_is_marked_as_what_may_vary(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, BRANCH.replace("(3, 4, 5, 6)", "(5, 6, 7)"))
    assert not any("torch._dynamo.mark_dynamic" in fix.code for fix in made.findings[0].fixes)
    assert fixes == [None, made.compiles]


def test_with_dynamic_given_nothing_dynamic_is_advised(tmp_path: Path) -> None:
    made = program(tmp_path, BRANCH.replace("@torch.compile", "@torch.compile(dynamic=True)"))
    fixes = [fix for finding in made.findings for fix in finding.fixes]
    assert fixes
    assert not any("dynamic" in fix.code for fix in fixes)


MARKED = """
import torch

@torch.compile
def total(x):
    kept = x.new_zeros(())
    for row in range(x.size(0)):
        kept = kept + x[row].max()
    return kept

for rows in (3, 4):
    x = torch.ones(rows, 2)
    torch._dynamo.mark_dynamic(x, 0)
    total(x)
"""


def test_a_mark_that_the_code_contradicts_is_a_finding_at_its_line(tmp_path: Path) -> None:
    made = program(tmp_path, MARKED)
    (finding,) = made.findings
    assert (finding.kind, finding.cost, made.compiles) == ("break", "stops", 1)
    assert finding.place.text.strip() == "for row in range(x.size(0)):"
    assert made.fixes(finding) == [None, 2]
    assert summarise(made.recording).breaks == (), "it is no graph break"


@pytest.mark.parametrize("loop", ["row in range(x.size(0))", "row, _ in enumerate(x)", "_ in x"])
def test_a_loop_over_a_size_is_no_reason_to_mark_it(tmp_path: Path, loop: str) -> None:
    text = MARKED.replace("    torch._dynamo.mark_dynamic(x, 0)\n", "")
    text = text.replace("row in range(x.size(0))", loop)
    if "row" not in loop:
        text = text.replace("x[row]", "_")
    made, fixes = check(tmp_path, text)
    assert (made.compiles, fixes) == (2, [None])


SPLIT = """
import torch

@torch.compile
def parts(x, lengths):
    pieces = x.split(lengths.tolist())
    return torch.stack([piece.mean() for piece in pieces])

for lengths in ([2, 6], [3, 5], [4, 4]):
    parts(torch.ones(8, 3), torch.tensor(lengths))
"""


def test_sizes_from_a_tensor_are_captured_as_numbers(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, SPLIT, "break")
    assert made.compiles > 1
    assert fixes == [1, None]


RATE = """
import torch

layer = torch.nn.Linear(3, 3)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.2)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

@torch.compile
def update():
    optimizer.step()

for _ in range(4):
    layer(torch.ones(2, 3)).sum().backward()
    update()
    schedule.step()
"""


def test_a_scheduled_rate_is_a_tensor_of_what_the_constructor_was_given(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, RATE.replace("range(4)", "range(1, 5)"))
    (finding,) = [one for one in made.findings if one.kind == "recompile"]
    assert finding.fixes[0].code.endswith("lr=torch.tensor(0.2))")
    assert (made.compiles, fixes[0]) == (2, 1)
    assert finding.place.text.strip() == "optimizer.step()"


def test_a_cycled_momentum(tmp_path: Path) -> None:
    text = RATE.replace("lr=0.2", "lr=torch.tensor(0.2)").replace(
        "ExponentialLR(optimizer, 0.9)", "OneCycleLR(optimizer, max_lr=0.3, total_steps=9)"
    )
    made, fixes = check(tmp_path, text)
    assert (made.compiles, fixes) == (2, [1, 2])


GROWING = """
import torch

@torch.compile
def attend(x, seen):
    seen.append(x.tanh())
    return torch.cat(seen).sum(0)

seen = []
for _ in range(4):
    attend(torch.ones(1, 3), seen)
"""


def test_a_list_that_grows_is_no_loop(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, GROWING)
    (finding,) = made.findings
    assert (made.compiles, fixes) == (4, [3, None]), "no item, one, and one of any size"
    assert not any("loop" in fix.text for fix in finding.fixes)


ONE_ROW = """
import torch

embedding = torch.nn.Embedding(9, 4)

@torch.compile
def look(ids):
    return embedding(ids).sum()

for length in (3, 4, 5):
    ids = torch.zeros(1, length, dtype=torch.int64)
    look(ids[:, :1])
"""


def test_a_stride_that_contiguous_does_not_change(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, ONE_ROW)
    assert "clone" in made.findings[0].code
    assert (made.compiles, fixes) == (2, [1])


VIEW = """
import torch

@torch.compile(dynamic=True)
def shifted(x, by):
    return x + by

kept = torch.arange(40)
for length in (40, 30, 20):
    shifted(kept[:length], 2)
"""


def test_a_view_that_shares_a_symbol_with_its_base_is_copied(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, VIEW)
    assert (made.compiles, fixes) == (2, [1])


BLOCKS = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3, 3))

    def forward(self, x):
        return (x @ self.weight).relu()

blocks = [Block() for _ in range(3)]
for block in blocks:
    block.compile()
x = torch.ones(2, 3)
for block in blocks:
    x = block(x)
x.sum().backward()
"""


def test_a_gradient_that_flows_is_not_cut(tmp_path: Path) -> None:
    made, _ = check(tmp_path, BLOCKS)
    (finding,) = made.findings
    assert made.compiles == 2
    assert not any(fix.code.endswith(".detach()") for fix in finding.fixes)


LATE = """
import torch

class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.squash = None

    def forward(self, x):
        if self.squash is None:
            self.squash = torch.sigmoid
        return x * self.squash(x)

gate = torch.compile(Gate())
for _ in range(3):
    gate(torch.ones(4))
"""


@pytest.mark.parametrize("asked", ["self.squash is None", "not hasattr(self, 'squash')"])
def test_an_attribute_that_the_first_call_sets_is_set_before(tmp_path: Path, asked: str) -> None:
    text = LATE.replace("self.squash is None", asked)
    if "hasattr" in asked:
        text = text.replace("        self.squash = None\n", "")
    made, fixes = check(tmp_path, text)
    assert (made.compiles, fixes[0]) == (2, 1)


def test_an_attribute_that_depends_on_the_call_is_only_described(tmp_path: Path) -> None:
    text = LATE.replace("= torch.sigmoid", "= x.sub")
    made = program(tmp_path, text)
    assert not any(fix.code for finding in made.findings for fix in finding.fixes)


NUMBER = """
import torch

class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.level = 0.25

    def forward(self, x):
        return x.cos() * self.level

noisy = Noisy()
run = torch.compile(noisy)
for step in range(4):
    noisy.level = 0.25 * (step + 1)
    run(torch.ones(4))
"""


def test_a_float_of_a_module_becomes_a_buffer_and_all_that_writes_it_fills(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, NUMBER)
    assert (made.compiles, fixes[0]) == (2, 1)


MODES = """
import torch

layer = torch.nn.Linear(3, 3)
run = torch.compile(layer)
x = torch.ones(2, 3)
with torch.no_grad():
    run(x)
with torch.inference_mode():
    run(x)
run(x)
"""


def test_modes_are_placed_where_the_calls_are(tmp_path: Path) -> None:
    made = program(tmp_path, MODES)
    assert [finding.place.line for finding in made.findings] == [10, 11] or [
        finding.place.line for finding in made.findings
    ] == [11, 10]
    keys = next(one for one in made.findings if one.place.line == 10)
    assert made.compiles == 3
    assert made.fixes(keys)[0] == 2


HOOKED = """
import torch

def check(module, given, result):
    if result.abs().sum().item() > 1e6:
        raise ValueError("large")

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.first.register_forward_hook(check)
        self.second.register_forward_hook(check)

    def forward(self, x):
        return self.second(self.first(x).tanh()) + x

run = torch.compile(Net())
run(torch.ones(2, 3))
"""


def test_what_a_hook_recompiles_is_placed_in_the_users_own_code(tmp_path: Path) -> None:
    made, _ = check(tmp_path, HOOKED)
    cause = next(one for one in made.findings if one.kind == "recompile")
    assert cause.place.file == str(made.file)
    cut = next(one for one in made.findings if one.kind == "break")
    assert made.fixes(cut)[0] == 1


KEPT = """
import torch
from torch.utils.checkpoint import checkpoint

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def costly(self, x):
        y = self.inner(x)
        print("here")
        return y.exp()

    def forward(self, x):
        return checkpoint(self.costly, x.sin(), use_reentrant=False).cos()

run = torch.compile(Net())
run(torch.ones(2, 3))
"""


def test_what_checkpoint_calls_runs_eagerly_as_a_whole(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, KEPT, "break")
    (finding,) = made.findings
    assert finding.cost == "eager"
    assert finding.title.startswith("costly runs eagerly")
    assert (made.compiles, fixes) == (2, [1])


def test_a_break_in_a_function_that_torch_compiles_by_itself(tmp_path: Path) -> None:
    text = KEPT.replace("checkpoint(self.costly, x.sin(), use_reentrant=False)", "self.costly(x)")
    (finding,) = program(tmp_path, text).findings
    assert finding.cost != "eager"


LOOP = """
import torch

@torch.compiler.disable
def logged(x):
    return x

class Stack(torch.nn.Module):
    def forward(self, x):
        for _ in range(3):
            x = logged(x.sin())
        return x

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = Stack()

    def forward(self, x):
        return self.stack(x.tanh()).cos()

run = torch.compile(Net())
run(torch.ones(2, 3))
"""


def test_a_frame_that_a_break_in_a_loop_leaves_to_python_is_named(tmp_path: Path) -> None:
    made, fixes = check(tmp_path, LOOP, "break")
    (finding,) = made.findings
    assert (finding.cost, finding.title.split()[0]) == ("eager", "Stack.forward")
    assert (made.compiles, fixes) == (2, [1])


def test_a_break_of_torchs_own_around_an_optimizer_leaves_nothing_to_python(tmp_path: Path) -> None:
    made = program(tmp_path, RATE)
    assert not [finding for finding in made.findings if finding.cost == "eager"]
