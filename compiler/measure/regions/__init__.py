"""Which compiled steps are compared with which eager operations."""
