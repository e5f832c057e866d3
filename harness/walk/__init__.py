"""A stored case, walked operation by operation."""
