"""Virtual ids that requests keep, and where their bytes are now."""
