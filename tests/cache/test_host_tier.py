"""Backups and loads call by call: what is enqueued, where, and what comes back.

Pages have four bytes and page 0 is the sink.  State and full attention share host memory.
"""

import pytest

from tests.alloc.small_chain import layout_of, states, tokens, window
from tests.cache.late_device import LateDevice, Race
from tests.cache.tiered_engine import TieredEngine
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.invariants import InvariantLevel
from unikv.cache.host_tier import HostCopy, HostTier
from unikv.device.port import Event, HostLayout, Stream
from unikv.trace.still_device import StillDevice

STATE, WINDOW, FULL = range(3)
HOST = (HostLayout(80, (STATE, FULL)), HostLayout(40, (WINDOW,)))
LAYOUT = layout_of(84, 4, states("state"), window("window"), tokens("full"))._replace(
    layer_groups=2, host=HOST
)
S, F, LOAD, BACKUP = Stream.SCHEDULE, Stream.FORWARD, Stream.LOAD, Stream.BACKUP


def filled() -> TieredEngine:
    """Ids 1..3 and slots 1 and 2 are bound and written; the step that wrote them is processed."""
    engine = TieredEngine(LAYOUT, InvariantLevel.STRICT)
    assert engine.take(3, 2)
    everything = [sorted(words) for words in engine.words]
    engine.step([()] * 3, everything)
    engine.process()
    engine.device.calls.clear()
    return engine


def kept(engine: TieredEngine, *ids: list[int]) -> HostCopy:
    """A copy of the pages of some ids, state first, that may be loaded."""
    name = engine.begin_backup(ids or ([1], [3], [1, 2, 3]))
    assert name is not None
    engine.submit_backup(name)
    engine.acknowledge(name)
    engine.device.calls.clear()
    return engine.kept[-1][0]


def begun(engine: TieredEngine) -> str:
    """The oldest kept copy is being loaded."""
    name = engine.begin_load(*engine.kept[0])
    assert name is not None
    return name


def enqueued(device: LateDevice, stream: Stream) -> list[tuple[object, ...]]:
    """What was asked of one stream, without the marks that it waits for."""
    return [
        (name, getattr(rest[0], "stream", None)) if name == "wait" else (name, *rest)
        for where, name, *rest in device.calls
        if where is stream
    ]


# Backups ------------------------------------------------------------------------------------


def test_a_backup_takes_slots_and_enqueues_nothing() -> None:
    engine = filled()
    copy = engine.tier.begin_backup("b", [[2], [], [1, 3]])
    assert copy.slots == ((0,), (), (19, 18))
    assert engine.device.calls == []


def test_a_submitted_backup_runs_behind_the_schedule_and_the_forward_stream() -> None:
    engine = filled()
    engine.tier.begin_backup("b", [[2], [], [1, 3]])
    engine.tier.submit_backup("b")
    assert enqueued(engine.device, BACKUP) == [
        ("wait", S),
        ("wait", F),
        ("to host", STATE, (2,), (0,)),
        ("to host", FULL, (20, 18), (19, 18)),
    ]


def test_a_backup_carries_what_the_pages_hold_at_its_submission() -> None:
    engine = filled()
    name = engine.begin_backup([[1], [], []])
    assert name is not None
    engine.step([()] * 3, [[1], (), ()])
    engine.submit_backup(name)
    engine.acknowledge(name)
    engine.check_thoroughly()


@pytest.mark.parametrize("band", [STATE, FULL])
def test_pages_that_moved_before_the_submission_are_backed_up_where_they_are(band: int) -> None:
    engine = filled()
    last = max(engine.words[band])
    name = engine.begin_backup([[last] if index == band else [] for index in range(3)])
    assert name is not None
    engine.free(band, [1])
    assert engine.chain.flush(8)
    now = engine.pages(engine.backups[name].ids)
    assert engine.backups[name].pages != now
    engine.submit_backup(name)
    assert enqueued(engine.device, BACKUP)[-1][2] == tuple(now[band])
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_pages_that_move_under_a_backup_are_handed_out_behind_it() -> None:
    engine = filled()
    name = engine.begin_backup([[2], [], []])
    assert name is not None
    engine.submit_backup(name)
    engine.free(STATE, [1])
    engine.chain.flush(1)
    assert engine.take(0, 1)
    engine.step([()] * 3, [[1], (), ()])
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_a_backup_of_pages_that_a_load_fills_waits_for_the_load() -> None:
    engine = filled()
    kept(engine)
    load = begun(engine)
    engine.submit_load(load)
    engine.device.calls.clear()
    name = engine.begin_backup([[], [], list(engine.loads[load].ids[FULL])])
    assert name is not None
    engine.submit_backup(name)
    assert enqueued(engine.device, BACKUP)[:3] == [("wait", S), ("wait", F), ("wait", LOAD)]
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_a_backup_waits_for_each_load_of_its_pages() -> None:
    engine = filled()
    kept(engine, [], [], [1])
    names = [begun(engine), begun(engine)]
    events = []
    for name in names:
        engine.submit_load(name)
        events.append(engine.loads[name].event)
    engine.tier.begin_backup("b", [[], [], [*engine.loads[names[0]].ids[FULL], 2, 5]])
    engine.tier.submit_backup("b")
    assert [call[2] for call in engine.device.calls if call[:2] == (BACKUP, "wait")][2:] == events


def test_a_backup_does_not_wait_for_a_load_of_other_pages() -> None:
    engine = filled()
    kept(engine)
    engine.submit_load(begun(engine))
    engine.device.calls.clear()
    engine.tier.begin_backup("b", [[2], [3], [1]])
    engine.tier.submit_backup("b")
    assert ("wait", LOAD) not in enqueued(engine.device, BACKUP)


def test_a_cancelled_backup_leaves_nothing() -> None:
    engine = filled()
    before = engine.everything()
    engine.tier.begin_backup("b", [[2], [3], [1]])
    engine.tier.cancel("b")
    assert engine.everything() == before


def test_a_cancelled_load_gives_its_ids_and_slots_back() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    assert [band.live for band in engine.chain.bands] == [3, 3, 6]
    engine.cancel(name)
    assert [band.counts for band in engine.chain.bands] == [
        (2, 0, 0, 0),
        (3, 0, 0, 0),
        (3, 0, 0, 0),
    ]
    engine.check_thoroughly()


# Loads --------------------------------------------------------------------------------------


def test_a_load_takes_ids_and_slots_and_reserves_window_rows() -> None:
    engine = filled()
    copy = kept(engine)
    taken = engine.tier.begin_load("l", copy)
    assert (taken.ids, taken.slots) == ([4, 5, 6], [3])
    assert engine.chain.translate(WINDOW, taken.ids) == [0, 0, 0]
    assert engine.chain.bands[WINDOW].fixed == 1


def test_nothing_that_a_load_takes_is_zeroed() -> None:
    engine = filled()
    kept(engine)
    begun(engine)
    assert {name for _, name, *_ in engine.device.calls} == {"map"}


def test_rows_are_for_the_last_ids_of_a_load() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    engine.name_rows(name)
    assert [bool(page) for page in engine.chain.translate(WINDOW, [4, 5, 6])] == [
        False,
        False,
        True,
    ]


def test_a_submitted_load_runs_behind_the_schedule_stream_group_by_group() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    engine.device.calls.clear()
    events = engine.tier.submit_load(name)
    (state,), (row,), owned = engine.pages(engine.loads[name].ids)
    copies = [
        ("from host", band, group, slots, pages)
        for group in range(2)
        for band, slots, pages in (
            (STATE, (0,), (state,)),
            (WINDOW, (0,), (row,)),
            (FULL, (19, 18, 17), tuple(owned)),
        )
    ]
    assert enqueued(engine.device, LOAD) == [("wait", S), *copies]
    # The wait and five pages per group: marks count what their queue holds before them.
    assert [str(event) for event in events] == ["load 6", "load 11"]


def test_rows_that_nobody_named_are_named_by_the_submission() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    engine.submit_load(name)
    assert engine.chain.bands[WINDOW].fixed == 0
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_reserved_rows_stay_while_everything_else_moves() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    (row,) = engine.chain.bands[WINDOW].fixed_pages()
    engine.free(FULL, [1, 2])
    engine.free(STATE, [1])
    assert engine.chain.flush(8) >= 2
    assert engine.has_moved(engine.loads[name])
    assert engine.chain.bands[WINDOW].fixed_pages() == [row]
    engine.submit_load(name)
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_nobody_else_is_handed_a_reserved_row() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    fixed = engine.chain.bands[WINDOW].fixed_pages()
    while engine.take(1, 0):
        assert not set(engine.chain.translate(WINDOW, range(1, 90))).intersection(fixed)
    engine.submit_load(name)
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_named_rows_move_and_are_filled_where_they_are() -> None:
    # The window is the low end here, so that a flush moves its rows.
    layout = layout_of(84, 4, window("window"), tokens("full"))
    engine = TieredEngine(layout._replace(host=(HostLayout(80, (0, 1)),)), InvariantLevel.STRICT)
    engine.take(3, 0)
    engine.step([(), ()], [[1, 2, 3], [1, 2, 3]])
    engine.process()
    kept(engine, [2, 3], [1, 2, 3])
    name = begun(engine)
    engine.name_rows(name)
    before = engine.chain.translate(0, engine.loads[name].ids[0])
    engine.free(0, [1, 2])
    assert engine.chain.flush(8)
    assert engine.chain.translate(0, engine.loads[name].ids[0]) != before
    engine.submit_load(name)
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_content_comes_back_after_others_had_its_pages_and_goes_out_again() -> None:
    engine = filled()
    kept(engine)
    engine.free(FULL, [1, 2, 3])
    assert engine.take(5, 0)
    engine.step([()] * 3, [[], [1, 2], [1, 2, 3, 4, 5]])
    engine.process()
    engine.free(FULL, [1, 2, 3, 4, 5])
    name = begun(engine)
    engine.submit_load(name)
    ids = [list(units) for units in engine.loads[name].ids]
    engine.acknowledge(name)
    engine.check_thoroughly()
    again = kept(engine, *ids)
    engine.drop(0)
    assert engine.begin_load(again, engine.kept[0][1]) is not None
    engine.submit_load(f"copy {engine._names}")
    engine.acknowledge(f"copy {engine._names}")
    engine.check_thoroughly()


def test_a_part_of_a_copy_may_be_loaded() -> None:
    engine = filled()
    copy, words = kept(engine), engine.kept[0][1]
    part = HostCopy(((), copy.slots[WINDOW], copy.slots[FULL][2:]))
    name = engine.begin_load(part, [[], words[WINDOW], words[FULL][2:]])
    assert name is not None
    engine.submit_load(name)
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_one_copy_may_be_loaded_twice_at_a_time() -> None:
    engine = filled()
    kept(engine, [], [], [1])
    first, second = begun(engine), begun(engine)
    engine.submit_load(first)
    engine.submit_load(second)
    engine.acknowledge(first)
    engine.drop(0)
    assert engine.kept
    engine.acknowledge(second)
    engine.drop(0)
    assert not engine.kept


# Forwards over loads ------------------------------------------------------------------------


def test_a_forward_waits_each_layer_group_of_its_loads_where_it_reads_it() -> None:
    engine = filled()
    kept(engine)
    events = [engine.tier.submit_load(begun(engine)) for _ in range(2)]
    engine.device.calls.clear()
    engine.tier.order_forward(Stream.FORWARD, ["copy 2", "copy 3"], 0)
    assert [call[2] for call in engine.device.calls] == [events[0][0], events[1][0]]
    engine.tier.order_forward(Stream.FORWARD, ["copy 3"], 1)
    assert engine.device.calls[2:] == [(F, "wait", events[1][1])]


def test_a_forward_that_does_not_wait_is_seen_by_the_device() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    engine.submit_load(name)
    (page,) = engine.chain.translate(FULL, engine.loads[name].ids[FULL][:1])
    engine.tier.order_forward(Stream.FORWARD, [name], 0)
    engine.device.forward_reads(FULL, page, 0)
    with pytest.raises(Race):
        engine.device.forward_reads(FULL, page, 1)


def test_the_schedule_stream_does_not_wait_for_a_forwards_loads() -> None:
    engine = filled()
    kept(engine)
    name = begun(engine)
    engine.submit_load(name)
    engine.device.calls.clear()
    engine.tier.order_forward(Stream.FORWARD, [name], 1)
    assert [call[0] for call in engine.device.calls] == [F]


# After the submission -----------------------------------------------------------------------


def test_ids_of_a_load_may_be_freed_before_it_has_ended() -> None:
    engine = filled()
    copy = kept(engine, [1], [], [1])
    name = begun(engine)
    engine.submit_load(name)
    ids = engine.loads[name].ids
    engine.free(FULL, ids[FULL])
    engine.free(STATE, ids[STATE])
    engine.check_thoroughly()
    engine.acknowledge(name)
    engine.tier.drop(copy)
    assert engine.chain.ledger.fences.uses() == ()


def test_pages_that_were_freed_under_a_load_are_handed_out_behind_it() -> None:
    engine = filled()
    kept(engine, [], [], [1])
    name = begun(engine)
    engine.submit_load(name)
    engine.free(FULL, engine.loads[name].ids[FULL])
    engine.device.calls.clear()
    assert engine.take(1, 0)
    assert ("wait", LOAD) in enqueued(engine.device, S)
    engine.check_thoroughly()
    engine.acknowledge(name)
    engine.check_thoroughly()


def test_an_acknowledged_load_is_waited_by_nobody() -> None:
    engine = filled()
    kept(engine, [], [], [1])
    name = begun(engine)
    engine.submit_load(name)
    engine.acknowledge(name)
    engine.free(FULL, [4])
    engine.device.calls.clear()
    assert engine.take(1, 0)
    assert ("wait", LOAD) not in enqueued(engine.device, S)


def test_host_slots_are_locked_until_the_load_is_acknowledged() -> None:
    engine = filled()
    kept(engine, [], [], [1])
    name = begun(engine)
    engine.submit_load(name)
    engine.device.run(LOAD, 100)
    engine.drop(0)
    assert engine.kept
    engine.acknowledge(name)
    engine.drop(0)
    assert not engine.kept


def test_copies_in_flight_are_named_oldest_first() -> None:
    engine = filled()
    kept(engine, [], [], [1])
    load = begun(engine)
    engine.tier.begin_backup("b", [[1], [], []])
    engine.tier.submit_backup("b")
    assert engine.tier.in_flight() == ["b"]
    engine.submit_load(load)
    assert engine.tier.in_flight() == [load, "b"]


# The table ----------------------------------------------------------------------------------


class WaitingDevice(StillDevice):
    """A device on which nothing runs, and who waited for whom."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: set[tuple[Stream, Event]] = set()

    def record_event(self, stream: Stream) -> Event:
        """The stream itself will do."""
        return stream

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Write it down."""
        self.waits.add((stream, event))


@pytest.mark.parametrize(
    ("toucher", "in_flight", "stream"),
    [
        (Toucher.BACKUP_COPY, InFlight.SCHEDULE, S),
        (Toucher.BACKUP_COPY, InFlight.FORWARD, F),
        (Toucher.BACKUP_COPY, InFlight.LOAD, LOAD),
        (Toucher.LOAD_COPY, InFlight.SCHEDULE, S),
        (Toucher.FORWARD, InFlight.LOAD, LOAD),
    ],
)
def test_streams_wait_because_the_table_says_so(
    toucher: Toucher, in_flight: InFlight, stream: Stream
) -> None:
    waited = {}
    for table in (CLEARANCE, {**CLEARANCE, (toucher, in_flight): Clearance.NONE}):
        device = WaitingDevice()
        chain = ChainAllocator(LAYOUT, device)
        tier = HostTier(LAYOUT, chain, device, table)
        ids = chain.take(1, 0).ids
        copy = tier.begin_backup("first", [[], [], ids])
        tier.submit_backup("first")
        tier.acknowledge("first")
        taken = tier.begin_load("load", copy)
        tier.submit_load("load")
        tier.begin_backup("second", [[], [], taken.ids])
        tier.order_forward(Stream.FORWARD, ["load"], 0)
        tier.submit_backup("second")
        waiting = {Toucher.BACKUP_COPY: BACKUP, Toucher.LOAD_COPY: LOAD}.get(toucher, F)
        waited[table is CLEARANCE] = (waiting, stream) in device.waits
    assert waited == {True: True, False: False}
