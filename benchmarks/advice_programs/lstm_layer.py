"""A recurrent layer.

gb: Attempted to wrap RNN, GRU, or LSTM
cause: break at `y, _ = self.rnn(x)`
fix: set torch._dynamo.config.allow_rnn = True
"""

import torch


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(4, 8, batch_first=True)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        x = x * 2
        y, _ = self.rnn(x)
        return self.head(y).softmax(-1)


model = Tagger()
example_inputs = (torch.randn(2, 5, 4),)
