"""Probes observe a running call: each step of compiled code, each eager operation."""
