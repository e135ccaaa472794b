"""What `tcw check` found, in the formats that people and tools read."""
