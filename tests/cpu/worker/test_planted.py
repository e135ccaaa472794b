"""Twelve planted changes in models of transformers: `tcw diff` names each first, with its cause,
and `tcw check` catches it with an untouched budget. Through the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cpu.command_line import tcw
from tests.cpu.worker.test_diff import git

pytestmark = pytest.mark.long

BERT = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import BertConfig, BertModel


@torch.library.custom_op("plantedlib::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@scaled.register_fake
def _(x):
    return torch.empty_like(x)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64)
        config = BertConfig(vocab_size=100, num_hidden_layers=1, **sizes)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(32, 32)

    def forward(self, ids, mask):
        hidden = self.bert(ids).last_hidden_state
        rounds = [hidden := F.gelu(self.head(hidden)) for _ in range(4)]
        scores = torch.softmax(hidden + 1, -1)
        return scores * hidden.mean()


torch.manual_seed(0)
model = Classifier().eval()
ids = torch.randint(100, (2, 16))
mask = torch.ones(2, 16, dtype=torch.long)
mask[:, 12:] = 0
example_inputs = [(ids, mask)]
"""

GPT = """\
import torch
import torch.nn as nn
from transformers import GPT2Config, GPT2Model


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        config = GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=1, n_head=2)
        self.gpt = GPT2Model(config)

    def forward(self, ids, step):
        hidden = self.gpt(ids, use_cache=False).last_hidden_state
        hidden = hidden * step
        return torch.softmax(hidden, -1)


torch.manual_seed(0)
model = Steps().eval()
example_inputs = [(torch.randint(100, (2, n)), n) for n in (16, 24, 32)]
"""

LLAMA = """\
import torch
import torch.nn as nn
from transformers import LlamaConfig, LlamaModel


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64)
        config = LlamaConfig(vocab_size=100, num_hidden_layers=1, **sizes)
        self.llama = LlamaModel(config)

    def forward(self, ids):
        hidden = self.llama(ids, use_cache=False).last_hidden_state
        print(hidden.shape)
        return torch.softmax(hidden, -1)


torch.manual_seed(0)
model = Decoder().eval()
example_inputs = [(torch.randint(100, (2, 16)),)]
"""
TCW = ("--no-grad", "--engine", "tcw")
INDUCTOR = ("--no-grad",)


class Planted(NamedTuple):
    model: str
    old: str
    new: str
    first: str
    """A pattern of the first line."""
    cause: str
    """The beginning of the second."""
    caught: str
    """A pattern of a line of the check."""
    options: tuple[str, ...] = TCW
    better: bool = False
    fused: tuple[str, ...] = ()
    """What the budget wants to be in one kernel."""


def edited(text: str) -> str:
    return rf"model.py:\d+ is (edited|new): {re.escape(text)}"


CHANGES = {
    "break": Planted(
        BERT,
        "        scores = torch",
        "        print(hidden.shape)\n        scores = torch",
        r"model.py:28  a new graph break: print\(\)",
        edited("print(hidden.shape)"),
        "a new graph break: GB",
    ),
    "break fixed": Planted(
        LLAMA,
        "        print(hidden.shape)\n",
        "",
        r"model.py:15  a graph break gone: print\(\)",
        r"model.py:15 is gone: print\(hidden.shape\)",
        "a graph break gone: GB",
        better=True,
    ),
    "guard": Planted(
        GPT,
        "        hidden = hidden * step",
        "        hidden = hidden * (step if step != 24 else 1)",
        r".*recompile",
        edited("hidden = hidden * (step if step != 24 else 1)"),
        "recompile",
    ),
    "size": Planted(
        GPT,
        "        hidden = hidden * step",
        "        hidden = hidden * step\n"
        "        hidden = torch.stack([hidden[:, n] for n in range(hidden.shape[1])], 1)",
        r"(Was dynamic and is now specialised|.*recompile)",
        edited("hidden = torch.stack([hidden[:, n] for n in range(hidden.shape[1])], 1)"),
        "was dynamic",
    ),
    "fusion": Planted(
        BERT,
        "        scores = torch.softmax(hidden + 1, -1)",
        "        scores = torch.softmax((hidden + 1).mT.reshape(2, 16, 32), -1)",
        r"No longer fused: ",
        edited("scores = torch.softmax((hidden + 1).mT.reshape(2, 16, 32), -1)"),
        "no longer in one kernel: gelu \\+ softmax",
        fused=("gelu + softmax",),
    ),
    "dtype": Planted(
        BERT,
        "F.gelu(self.head(hidden))",
        "F.gelu(self.head(hidden).double()).float()",
        r"model.py:27  gelu computes in float64, was float32",
        edited("rounds = [hidden := F.gelu(self.head(hidden).double()).float()"),
        "kernels computing in float32, float64",
    ),
    "mask": Planted(
        BERT,
        "self.bert(ids).last",
        "self.bert(ids, attention_mask=mask).last",
        r".*scaled_dot_product_attention",
        edited("hidden = self.bert(ids, attention_mask=mask).last_hidden_state"),
        "library calls of scaled_dot_product",
    ),
    "reuse": Planted(
        BERT,
        "        return scores * hidden.mean()",
        "        return scores * hidden.mean(), [hidden + n for n in range(8)]",
        r".*",
        edited("return scores * hidden.mean(), [hidden + n for n in range(8)]"),
        "memory peak",
    ),
    "custom op": Planted(
        BERT,
        "        scores = torch.softmax(hidden + 1, -1)",
        "        scores = torch.softmax(scaled(hidden) + 1, -1)",
        r"model.py:28  plantedlib::scaled is new",
        edited("scores = torch.softmax(scaled(hidden) + 1, -1)"),
        "library calls of .*scaled",
    ),
    "cache": Planted(
        BERT,
        "torch.manual_seed(0)\n",
        "import torch._inductor.config\n"
        "torch._inductor.config.post_grad_custom_post_pass = lambda graph: None\n"
        "torch.manual_seed(0)\n",
        r"A new cache bypass: ",
        "torch._inductor.config.post_grad_custom_post_pass default → <lambda>",
        "a new cache bypass: .*",
        INDUCTOR,
    ),
    "setting": Planted(
        BERT,
        "torch.manual_seed(0)\n",
        "import torch._inductor.config\n"
        "torch._inductor.config.cpp.simdlen = 0\n"
        "torch.manual_seed(0)\n",
        r"Other code: ",
        "torch._inductor.config.cpp.simdlen default → 0",
        r"torch\._inductor\.config\.cpp\.simdlen default → 0",
        INDUCTOR,
    ),
    "numerics": Planted(
        BERT,
        "        return scores * hidden.mean()",
        "        return scores * hidden.mean() * (1.5 if torch.compiler.is_compiling() else 1)",
        r"Results are wrong",
        edited("return scores * hidden.mean() * (1.5 if torch.compiler.is_compiling() else 1)"),
        "a new failure: wrong results",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_planted_change(name: str, tmp_path: Path) -> None:
    change = CHANGES[name]
    file = tmp_path / "model.py"
    file.write_text(change.model)
    given = [option.removeprefix("--") for option in change.options]
    options = 'no-grad = true\nengine = "tcw"\n' if "tcw" in given else "no-grad = true\n"
    options += f"fused = {list(change.fused)}\n"
    (tmp_path / "tcw.toml").write_text(f'[targets.model]\nfile = "model.py"\n{options}')
    done = tcw(tmp_path, "check", "--accept", "--quiet")
    assert done.code == 0, done.err
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    assert change.model.count(change.old) == 1
    file.write_text(change.model.replace(change.old, change.new))

    arguments = ("diff", "--base", "HEAD", "model.py", *change.options, "--quiet")
    done = tcw(tmp_path, *arguments, COLUMNS="200")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert re.match(change.first, lines[0]), done.out
    assert re.match(change.cause, lines[1].removeprefix("because").strip()), done.out

    done = tcw(tmp_path, "check", "--quiet", COLUMNS="200")
    assert done.code == (0 if change.better else 1), done.out
    assert re.search(change.caught, done.out), done.out
