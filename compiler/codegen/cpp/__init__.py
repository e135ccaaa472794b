"""The CPU target: header-free C++ with vector extensions, for g++ 12 or later."""
