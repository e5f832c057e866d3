"""Fuzzers that choose bytes: the same operations and checks, driven from outside."""
