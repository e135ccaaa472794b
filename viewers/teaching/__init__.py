"""What helps to teach with a recording: guesses before the truth, and notes."""
