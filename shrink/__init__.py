"""Smaller failing sequences, by deleting and simplifying items for as long as they still fail.

Generic on purpose: it needs a sequence, a predicate and an order, and knows of no domain.
"""

from shrink.ahead import ALONE, Ahead, Alone, Comparable
from shrink.passes import (
    PAIRS_MAX,
    delete_pairs,
    delete_runs,
    largest_working,
    replace_items,
    truncate,
)
from shrink.problem import (
    SILENT,
    Budget,
    DoesNotFail,
    Observer,
    OutOfBudget,
    Pass,
    Problem,
    Progress,
    Reducible,
    Silent,
    never,
)
from shrink.reducer import Ends, Reduction, reduce
from shrink.rewrites import (
    EXCHANGES_MAX,
    STEPS_MAX,
    exchange_items,
    merge_items,
    move_items,
    replace_pairs,
    rewrite,
)
from shrink.views import behind, by_name

__all__ = [
    "ALONE",
    "EXCHANGES_MAX",
    "PAIRS_MAX",
    "SILENT",
    "STEPS_MAX",
    "Ahead",
    "Alone",
    "Budget",
    "Comparable",
    "DoesNotFail",
    "Ends",
    "Observer",
    "OutOfBudget",
    "Pass",
    "Problem",
    "Progress",
    "Reducible",
    "Reduction",
    "Silent",
    "behind",
    "by_name",
    "delete_pairs",
    "delete_runs",
    "exchange_items",
    "largest_working",
    "merge_items",
    "move_items",
    "never",
    "reduce",
    "replace_items",
    "replace_pairs",
    "rewrite",
    "truncate",
]
