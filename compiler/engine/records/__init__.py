"""Records of our stages, in the same form as those of Inductor's compiles: viewers read both."""
