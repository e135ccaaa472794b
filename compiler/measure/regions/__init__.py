"""Which compiled steps stand against which eager operations."""
