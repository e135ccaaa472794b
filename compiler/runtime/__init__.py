"""From C++ text to a callable: build, cache, load, call. Torch is imported only where needed."""
