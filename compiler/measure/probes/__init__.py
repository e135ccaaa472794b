"""Probes look into a running call: at each step of compiled code, at each eager operation."""
