// Source of the target that owns the tests' precompiled header.
