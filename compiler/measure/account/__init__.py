"""What a call's time adds up to: its lines, regions and records."""
