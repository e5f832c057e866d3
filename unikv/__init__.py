"""unikv: one byte arena for all the KV of a hybrid model, and the allocator that keeps it safe.

The host is the author of every fact and the device holds copies, so nothing in this package reads
the device to decide.  Start with `unikv.alloc.clearance`, then `unikv.storage`.
"""

__version__ = "0.1.0"
"""The only place that states the version; a build reads it here without running anything."""
