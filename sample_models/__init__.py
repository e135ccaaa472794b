"""Small models, each of which shows one thing that torch.compile does."""
