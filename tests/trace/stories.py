"""What two stored traces tell, as calls: run against a recorder, each writes its trace again.

Pages are translated after everything that may have moved them, because ids alone would not tell
where a build puts its pages.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.alloc.small_chain import layout_of, states, tokens, window
from unikv.device.port import StorageLayout, Stream
from unikv.errors import Shortage
from unikv.trace.record import Recorder, record
from unikv.trace.still_device import build_still

STORED = Path(__file__).parents[2] / "scenarios" / "traces"
STATE, WINDOW, FULL = range(3)


class Story(NamedTuple):
    """A trace's reason, its memory spaces and its calls."""

    why: str
    layout: StorageLayout
    tell: Callable[[Recorder], None]


def run_step(storage: Recorder, number: int, writes: Sequence[Sequence[int]]) -> None:
    """One step that writes the pages of these ids, band by band."""
    storage.chain.launch_step(number)
    event = storage.chain.device.record_event(Stream.FORWARD)
    storage.chain.record_step(number, event, writes)


def places(storage: Recorder, ids: Sequence[int], slots: Sequence[int]) -> None:
    """Ask where everything is."""
    for band in (WINDOW, FULL):
        storage.chain.translate(band, ids)
    storage.chain.translate(STATE, slots)


def slots_exhausted(storage: Recorder) -> None:
    """Three slots are all there are; the fourth request waits until one is free again."""
    chain, requests = storage.chain, storage.requests
    held: list[list[int]] = []
    slots: list[int] = []
    for _ in range(3):
        row = requests.take()
        taken = chain.take(2, 1)
        requests.append(row, taken.ids)
        held.append(taken.ids)
        slots += taken.slots
    places(storage, [*held[0], *held[1], *held[2]], slots)
    assert not chain.fits(1, 1)
    with pytest.raises(Shortage, match="short of ids: 1 ids asked of state, 0 free"):
        chain.take(1, 1)
    grown = chain.take(1, 0).ids
    requests.append(row, grown)
    run_step(storage, 1, [slots, held[0] + grown, held[0] + grown])
    chain.free_slots(slots[1:2])
    chain.free(held[1])
    requests.give_back(1)
    again = chain.take(0, 1).slots
    places(storage, held[0] + held[2] + grown, [slots[0], slots[2], *again])
    chain.process_step(1)
    with pytest.raises(Shortage, match="short of bytes"):
        chain.take(9, 0)
    chain.free(held[0])
    chain.free_slots(again)
    last = chain.take(3, 1)
    places(storage, [*held[2], *grown, *last.ids], [slots[0], slots[2], *last.slots])


def float_relocated(storage: Recorder) -> None:
    """Holes are closed under a running step, then the float steps aside for the growing end."""
    chain = storage.chain
    first = chain.take(3, 4)
    run_step(storage, 1, [first.slots[:1], first.ids[:1], first.ids[:1]])
    chain.free_slots(first.slots[1:2])
    chain.retire(WINDOW, first.ids[:1])
    chain.process_step(1)
    run_step(storage, 2, [first.slots[3:], (), ()])
    places(storage, first.ids[1:], [first.slots[0], *first.slots[2:]])
    assert chain.flush(4) == 1
    places(storage, first.ids[1:], [first.slots[0], *first.slots[2:]])
    more = chain.take(0, 4)
    assert chain.counters.relocations == 1
    places(storage, first.ids[1:], [first.slots[0], *first.slots[2:], *more.slots])
    chain.process_step(2)
    chain.free_slots(more.slots)
    chain.free(first.ids)
    assert chain.relieve(2, 2)
    last = chain.take(2, 2)
    places(storage, last.ids, [first.slots[0], *first.slots[2:], *last.slots])


STORIES: Mapping[str, Story] = {
    "state_slots_exhausted.jsonl": Story(
        "State slots run out by ids, then the arena by bytes; a refusal changes nothing, and what"
        " is freed under a running step is taken again.",
        layout_of(104, 8, states("state", 8, 3), window("window", 4, 30), tokens("full", 4, 30)),
        slots_exhausted,
    ),
    "float_relocated.jsonl": Story(
        "A flush closes a hole while a step writes the page that moves; a relief then relocates"
        " the float, so that the state band can grow.",
        layout_of(52, 4, states("state"), window("window"), tokens("full")),
        float_relocated,
    ),
}


def tell(name: str, path: Path) -> None:
    """Write the trace of one story into a new file."""
    story = STORIES[name]
    with record(build_still(story.layout), path, story.why) as recorder:
        story.tell(recorder)
