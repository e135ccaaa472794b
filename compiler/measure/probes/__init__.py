"""What looks into a call while it runs: at each step of compiled code, at each eager operation."""
