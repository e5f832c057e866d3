"""Planted faults: one bug each, and the check that must catch it."""
