"""Memory: when each value is alive, whose memory it takes over, what is written in place."""
