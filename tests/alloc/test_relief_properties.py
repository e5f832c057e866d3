"""Random chains whose pages are in many hands, judged question by question.

The chains are built by driving an allocator, because states that are poked into a band need not be
ones that it can reach.  They are small and crowded: a rule that is wrong is wrong where hardly
anything is free.
"""

from collections import Counter

import pytest

from benchmarks.search.lending_player import play_chain

# Together 1,000 chains; in portions, so that each test is short and they can share the cores.
# `python -m benchmarks.capacity_search --reliefs N` plays as many more as there is time for.
SEEDS = range(40)
CHAINS_PER_SEED = 25

# What every portion has met at least as often: silence about a rule that was never asked for is
# no evidence.
FLOORS = {
    "questions": 200,
    "refusals": 80,
    "reliefs": 15,
    "relocations": 10,
    "disturbed": 3,
}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_answer_is_true(seed: int) -> None:
    reached: Counter[str] = Counter()
    for chain in range(CHAINS_PER_SEED):
        reached += play_chain(seed * CHAINS_PER_SEED + chain)
    assert all(reached[what] >= floor for what, floor in FLOORS.items()), reached
