"""The port: the only door from the allocator to memory and streams."""
