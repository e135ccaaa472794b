"""What is called: inputs, and the runs made with them, each from the same state."""
