"""Smaller failing sequences, by deleting and simplifying items for as long as they still fail.

Generic on purpose: it needs a sequence, a predicate and an order, and knows of no domain.
"""

from shrink.passes import (
    PAIRS_MAX,
    Pass,
    delete_pairs,
    delete_runs,
    largest_working,
    replace_items,
    truncate,
)
from shrink.problem import (
    SILENT,
    Budget,
    Comparable,
    DoesNotFail,
    Observer,
    OutOfBudget,
    Problem,
    Progress,
    Silent,
    never,
)
from shrink.reducer import Reduction, reduce

__all__ = [
    "PAIRS_MAX",
    "SILENT",
    "Budget",
    "Comparable",
    "DoesNotFail",
    "Observer",
    "OutOfBudget",
    "Pass",
    "Problem",
    "Progress",
    "Reduction",
    "Silent",
    "delete_pairs",
    "delete_runs",
    "largest_working",
    "never",
    "reduce",
    "replace_items",
    "truncate",
]
