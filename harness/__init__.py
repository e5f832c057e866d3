"""Drives an allocator, watches it, and reports the promises it breaks."""
