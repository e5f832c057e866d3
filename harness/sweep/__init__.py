"""Many seeds: handed to processes, written down before they run, folded into one answer.

Nothing here knows an operation or a check; a seed is a number that a workload turns into a result.
"""
