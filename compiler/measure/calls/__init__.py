"""What is called: inputs, and the runs made of them, each from the same state."""
