"""Any sequence of takes, frees, steps and flushes, compared with dictionaries.

The arenas hold a dozen pages, because an allocator is only wrong where hardly anything is free.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alloc.small_chain import layout_of, states, tokens, window
from tests.alloc.watched_engine import WatchedEngine
from unikv.device.port import StorageLayout

LAYOUTS: dict[str, StorageLayout] = {
    "one band": layout_of(40, 4, tokens("full", 4, 8)),
    "two ends": layout_of(54, 4, window("window", 4, 7), tokens("full", 4, 7)),
    "uneven ends": layout_of(61, 6, window("window", 4, 7), tokens("full", 6, 7)),
    "a float": layout_of(75, 6, states("state", 6, 4), window("near", 4, 6), tokens("full", 5, 6)),
    "two floats": layout_of(
        97,
        6,
        states("state", 6, 4),
        window("far", 4, 6),
        window("near", 3, 6),
        tokens("full", 5, 6),
    ),
}

ACTS = ("take", "take", "free", "retire", "step", "step", "process", "flush", "relieve")
numbers = st.integers(0, 7)
scripts = st.lists(st.tuples(st.sampled_from(ACTS), numbers, numbers), min_size=40, max_size=60)


def play(engine: WatchedEngine, act: str, first: int, second: int) -> None:
    """One operation of a script; what cannot be done is left out."""
    if act == "take":
        engine.take(first % 4, second % 3)
    elif act == "free":
        held = sorted(engine.held[engine.owner])
        engine.free(held[first:][: 1 + second % 3] if held else [])
    elif act == "retire":
        bands = [band for band in range(len(engine.held)) if band != engine.owner]
        if bands:
            band = bands[second % len(bands)]
            engine.retire(band, sorted(engine.held[band])[first:][: 1 + second % 3])
    elif act == "step":
        if len(engine.recorded) < 3:
            engine.run_step(first)
    elif act == "process":
        engine.process()
    elif act == "flush":
        assert engine.chain.flush(first) <= first
    else:
        engine.chain.relieve(first % 4, second % 3 if engine.state >= 0 else 0)


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=40)
@given(script=scripts)
def test_any_sequence_is_safe_on_the_device_and_true_to_the_dictionaries(
    name: str, script: list[tuple[str, int, int]]
) -> None:
    engine = WatchedEngine(LAYOUTS[name])
    for act, first, second in script:
        play(engine, act, first, second)
        engine.check()
