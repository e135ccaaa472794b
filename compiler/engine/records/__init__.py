"""What the stages made, as the records that Inductor's compiles leave: every viewer reads both."""
