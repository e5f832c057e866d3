"""Bands, steps, the ledger and the one table that says who waits for what."""
