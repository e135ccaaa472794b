"""Small models that each show one thing that torch.compile does."""
