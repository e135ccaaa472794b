"""What every code generator knows of a nest: facts, its simplest form, rounding, names."""
