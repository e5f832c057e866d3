"""The arena: one run of bytes that every band shares."""
