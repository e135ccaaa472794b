"""What steers a recording: its context, the hooks and when they are installed. No torch."""
