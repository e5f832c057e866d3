"""What a host tier refuses: in words, and with nothing changed.

Pages have four bytes and page 0 is the sink, in a chain with two window bands.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.alloc.small_chain import layout_of, tokens, window
from tests.cache.tiered_engine import TieredEngine
from unikv.alloc.invariants import InvariantLevel
from unikv.cache.host_tier import HostCopy, HostTier
from unikv.device.port import HostLayout, Stream
from unikv.errors import (
    ArgumentError,
    HostTierError,
    OwnershipError,
    Shortage,
    StepOrderError,
    UnikvError,
)

LOW, MIDDLE, FULL = range(3)
LAYOUT = layout_of(104, 4, window("low"), window("middle"), tokens("full"))._replace(
    host=(HostLayout(60, (LOW, FULL)), HostLayout(16, (MIDDLE,)))
)


def engine_of(level: InvariantLevel = InvariantLevel.STRICT) -> TieredEngine:
    """Ids 1..3 are bound everywhere, and a copy of them is kept."""
    engine = TieredEngine(LAYOUT, level)
    engine.take(3, 0)
    engine.step([()] * 3, [[1, 2, 3]] * 3)
    engine.process()
    name = engine.begin_backup([[3], [2, 3], [1, 2, 3]])
    assert name is not None
    engine.submit_backup(name)
    engine.acknowledge(name)
    return engine


def begun(engine: TieredEngine) -> str:
    """The kept copy is being loaded, into ids 4..6."""
    name = engine.begin_load(*engine.kept[0])
    assert name is not None
    assert engine.loads[name].ids == ((6,), (5, 6), (4, 5, 6))
    return name


# Names and turns ----------------------------------------------------------------------------

TURNS: dict[str, tuple[Callable[[HostTier, HostCopy], object], str]] = {
    "backup of a name in use": (
        lambda tier, copy: tier.begin_backup("load", [[], [], [1]]),
        "begin_backup: a copy named 'load' is not over",
    ),
    "load of a name in use": (
        lambda tier, copy: tier.begin_load("running", copy),
        "begin_load: a copy named 'running' is not over",
    ),
    "unknown backup": (
        lambda tier, copy: tier.submit_backup("nobody"),
        r"submit_backup: no backup 'nobody'; unfinished are \['backup', 'running'\]",
    ),
    "unknown load": (
        lambda tier, copy: tier.submit_load("nobody"),
        r"submit_load: no load 'nobody'; unfinished are \['load', 'rowless', 'loading'\]",
    ),
    "submission of a load as a backup": (
        lambda tier, copy: tier.submit_backup("load"),
        "submit_backup: no backup 'load'",
    ),
    "submission of a backup as a load": (
        lambda tier, copy: tier.submit_load("backup"),
        "submit_load: no load 'backup'",
    ),
    "second submission of a backup": (
        lambda tier, copy: tier.submit_backup("running"),
        "submit_backup: 'running' is submitted already; acknowledge it next",
    ),
    "second submission of a load": (
        lambda tier, copy: tier.submit_load("loading"),
        "submit_load: 'loading' is submitted already",
    ),
    "naming after the submission": (
        lambda tier, copy: tier.name_rows("loading"),
        "name_rows: 'loading' is submitted already",
    ),
    "naming of a backup": (
        lambda tier, copy: tier.name_rows("backup"),
        "name_rows: no load 'backup'",
    ),
    "acknowledgement before the submission": (
        lambda tier, copy: tier.acknowledge("load"),
        r"acknowledgement of 'load', but only submitted .* are \['running', 'loading'\]",
    ),
    "acknowledgement of nothing": (
        lambda tier, copy: tier.acknowledge("nobody"),
        "acknowledgement of 'nobody'",
    ),
    "cancel after the submission": (
        lambda tier, copy: tier.cancel("loading"),
        "cancel of 'loading', which is submitted",
    ),
    "cancel of nothing": (
        lambda tier, copy: tier.cancel("nobody"),
        "cancel of 'nobody', which is unknown",
    ),
    "forward over a load that is not submitted": (
        lambda tier, copy: tier.order_forward(Stream.FORWARD, ["loading", "load"], 0),
        r"order_forward: 'load' is no load in flight; those are \['loading'\]",
    ),
    "forward over a backup": (
        lambda tier, copy: tier.order_forward(Stream.FORWARD, ["running"], 0),
        "order_forward: 'running' is no load in flight",
    ),
    "forward over nothing": (
        lambda tier, copy: tier.order_forward(Stream.FORWARD, ["nobody"], 0),
        "order_forward: 'nobody' is no load in flight",
    ),
}


def every_state() -> tuple[TieredEngine, HostCopy]:
    """A backup and a load before their submission, and one of each after it."""
    engine = engine_of()
    copy = engine.kept[0][0]
    tier = engine.tier
    tier.begin_backup("backup", [[], [], [1]])
    tier.begin_backup("running", [[], [], [2]])
    tier.submit_backup("running")
    tier.begin_load("load", copy)
    pages = HostCopy(((), (), copy.slots[FULL]))
    tier.begin_load("rowless", pages)
    tier.begin_load("loading", pages)
    tier.submit_load("loading")
    return engine, copy


@pytest.mark.parametrize("what", TURNS)
def test_a_call_out_of_turn_is_refused(what: str) -> None:
    engine, copy = every_state()
    act, text = TURNS[what]
    refusal = engine.refused(HostTierError, lambda: act(engine.tier, copy))
    assert re.match(text, refusal)


def test_rows_are_named_once() -> None:
    engine = engine_of()
    name = begun(engine)
    engine.name_rows(name)
    text = engine.refused(HostTierError, lambda: engine.tier.name_rows(name))
    assert "has no unnamed rows; submit it next" in text


def test_a_name_may_be_used_again_when_its_copy_is_over() -> None:
    engine = engine_of()
    for _ in range(2):
        engine.tier.begin_backup("b", [[], [], [1]])
        engine.tier.cancel("b")
    engine.tier.begin_load("b", engine.kept[0][0])


def test_an_acknowledgement_comes_once() -> None:
    engine = engine_of()
    name = begun(engine)
    engine.submit_load(name)
    engine.acknowledge(name)
    engine.refused(HostTierError, lambda: engine.tier.acknowledge(name))


STEP_CALLS: dict[str, Callable[[HostTier, HostCopy], object]] = {
    "submit_backup": lambda tier, copy: tier.submit_backup("backup"),
    "begin_load": lambda tier, copy: tier.begin_load("new", copy),
    "name_rows": lambda tier, copy: tier.name_rows("load"),
    "submit_load": lambda tier, copy: tier.submit_load("load"),
    "submit_load without rows": lambda tier, copy: tier.submit_load("rowless"),
    "acknowledge": lambda tier, copy: tier.acknowledge("running"),
    "cancel": lambda tier, copy: tier.cancel("load"),
}


@pytest.mark.parametrize("call", STEP_CALLS)
def test_the_chain_is_left_alone_between_launch_and_record(call: str) -> None:
    engine, copy = every_state()
    engine.chain.launch_step(2)
    engine.refused(StepOrderError, lambda: STEP_CALLS[call](engine.tier, copy))


def test_host_slots_alone_are_taken_and_given_back_also_during_a_launch() -> None:
    engine = engine_of()
    engine.chain.launch_step(2)
    engine.tier.begin_backup("b", [[], [], [1]])
    engine.tier.cancel("b")
    engine.drop(0)


# Room ---------------------------------------------------------------------------------------


def test_a_backup_with_one_pool_short_takes_of_none() -> None:
    engine = engine_of()
    text = engine.refused(
        Shortage, lambda: engine.tier.begin_backup("b", [[1], [1, 2, 3], [1, 2, 3]])
    )
    assert text == "short of host slots: 3 host slots asked of middle, 2 free"


def test_a_load_for_which_the_chain_has_no_room_locks_nothing() -> None:
    engine = engine_of()
    while engine.take(1, 0):
        pass
    engine.refused(Shortage, lambda: engine.tier.begin_load("l", engine.kept[0][0]))
    engine.drop(0)
    assert not engine.kept


# Slots --------------------------------------------------------------------------------------


def test_a_copy_is_not_loaded_before_its_backup_is_acknowledged() -> None:
    engine = engine_of()
    copy = engine.tier.begin_backup("b", [[], [], [1]])
    for _ in range(2):
        text = engine.refused(OwnershipError, lambda: engine.tier.begin_load("l", copy))
        assert "load of slot 11, which is FILLING" in text
        if not engine.tier.in_flight():
            engine.device.host_wait(engine.tier.submit_backup("b"))
    engine.tier.acknowledge("b")
    engine.tier.begin_load("l", copy)


def test_a_copy_is_not_dropped_before_its_backup_is_acknowledged() -> None:
    engine = engine_of()
    copy = engine.tier.begin_backup("b", [[], [], [1]])
    engine.refused(OwnershipError, lambda: engine.tier.drop(copy))
    engine.tier.submit_backup("b")
    engine.device.run(Stream.BACKUP, 9)
    engine.refused(OwnershipError, lambda: engine.tier.drop(copy))


def test_a_copy_is_dropped_once_and_loaded_no_more() -> None:
    engine = engine_of()
    copy = engine.kept[0][0]
    engine.drop(0)
    engine.refused(OwnershipError, lambda: engine.tier.drop(copy))
    engine.refused(OwnershipError, lambda: engine.tier.begin_load("l", copy))


def test_a_second_drop_is_refused_until_another_backup_has_filled_the_slots() -> None:
    engine = engine_of()
    copy = engine.kept[0][0]
    engine.drop(0)
    assert engine.tier.begin_backup("b", [[3], [2, 3], [1, 2, 3]]) == copy
    engine.refused(OwnershipError, lambda: engine.tier.drop(copy))
    engine.device.host_wait(engine.tier.submit_backup("b"))
    engine.refused(OwnershipError, lambda: engine.tier.drop(copy))
    engine.tier.acknowledge("b")
    engine.tier.drop(copy)  # it is the copy of `b`, as far as anybody can tell


def test_a_copy_that_any_load_reads_is_not_dropped() -> None:
    engine = engine_of()
    first, second = begun(engine), engine.begin_load(*engine.kept[0])
    assert second is not None
    for name in (first, second):
        engine.refused(OwnershipError, lambda: engine.tier.drop(engine.kept[0][0]))
        engine.cancel(name)
    engine.drop(0)
    assert not engine.kept


def test_a_slot_is_read_once_by_one_load() -> None:
    engine = engine_of()
    slots = engine.kept[0][0].slots[FULL][:1]
    engine.refused(
        OwnershipError, lambda: engine.tier.begin_load("l", HostCopy(((), (), slots * 2)))
    )


# Ids that changed hands ---------------------------------------------------------------------


def test_ids_that_name_no_page_are_not_backed_up() -> None:
    engine = engine_of()
    engine.chain.retire(MIDDLE, [2])
    engine.refused(OwnershipError, lambda: engine.tier.begin_backup("b", [[], [2], []]))
    engine.refused(OwnershipError, lambda: engine.tier.begin_backup("b", [[], [], [9]]))


@pytest.mark.parametrize("again", [False, True])
def test_a_backup_of_freed_ids_can_only_be_cancelled(*, again: bool) -> None:
    engine = engine_of()
    name = engine.begin_backup([[], [1], [1, 2]])
    assert name is not None
    engine.free(FULL, [2])
    if again:  # the id is somebody else's at once
        engine.take(1, 0)
        assert 2 in engine.words[FULL]
    text = engine.refused(OwnershipError, lambda: engine.tier.submit_backup(name))
    assert "ids [2] of band 'full' were freed since it began" in text
    engine.cancel(name)
    engine.check_thoroughly()


def test_a_backup_of_retired_rows_can_only_be_cancelled() -> None:
    engine = engine_of()
    name = engine.begin_backup([[], [1], [1]])
    assert name is not None
    engine.free(MIDDLE, [1])
    text = engine.refused(OwnershipError, lambda: engine.tier.submit_backup(name))
    assert "ids [1] of band 'middle' were freed" in text


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_load_whose_ids_were_freed_can_only_be_cancelled(*, again: bool, named: bool) -> None:
    engine = engine_of()
    name = begun(engine)
    if named:
        engine.name_rows(name)
    engine.free_early(name, FULL, [5])
    if again:
        engine.take(1, 0)
        assert 5 in engine.words[FULL]
    engine.refused(UnikvError, lambda: engine.tier.name_rows(name))
    text = engine.refused(OwnershipError, lambda: engine.tier.submit_load(name))
    assert "ids [5] of band" in text
    engine.cancel(name)
    engine.check_thoroughly()
    # What somebody else was handed meanwhile stays with him.
    assert bool(engine.chain.translate(FULL, [5])[0]) is again
    assert engine.chain.translate(FULL, [4, 6]) == [0, 0]
    assert [band.fixed for band in engine.chain.bands] == [0, 0, 0]


def test_a_load_whose_named_row_was_retired_can_only_be_cancelled() -> None:
    engine = engine_of()
    name = begun(engine)
    engine.name_rows(name)
    engine.free_early(name, MIDDLE, [5])
    engine.refused(OwnershipError, lambda: engine.tier.submit_load(name))
    engine.cancel(name)
    engine.check_thoroughly()
    assert engine.chain.translate(MIDDLE, [5, 6]) == [0, 0]


@pytest.mark.parametrize("band", [LOW, MIDDLE])
def test_rows_are_named_in_every_window_or_in_none(band: int) -> None:
    engine = engine_of()
    name = begun(engine)
    # Another reservation gives one of the ids a row of its own.
    engine.chain.users.name_reserved(band, [6], engine.chain.reserve(band, 1))
    text = engine.refused(OwnershipError, lambda: engine.tier.name_rows(name))
    assert "ids [6] name other rows" in text
    engine.refused(OwnershipError, lambda: engine.tier.submit_load(name))
    engine.cancel(name)
    assert engine.chain.translate(band, [6]) == [0]
    engine.check_thoroughly()


@pytest.mark.parametrize("named", [False, True])
def test_a_cancelled_load_gives_everything_back(*, named: bool) -> None:
    engine = engine_of()
    free = [minted.free_count for minted in engine.chain.minted.values()]
    name = begun(engine)
    if named:
        engine.name_rows(name)
    engine.cancel(name)
    engine.check_thoroughly()
    assert [minted.free_count for minted in engine.chain.minted.values()] == free
    assert [band.counts for band in engine.chain.bands] == [(3, 0, 0, 0)] * 3
    assert [pool.readers() for pool in engine.tier.memory.pools] == [{}, {}, {}]
    assert engine.tier.copies == {}


# Arguments ----------------------------------------------------------------------------------

NO_WORD: Any = ["b"]
NO_COPY: Any = [[], [], [1]]

ARGUMENTS: dict[str, Callable[[HostTier, HostCopy], object]] = {
    "ids of two bands": lambda tier, copy: tier.begin_backup("b", [[1], [1]]),
    "an id that is no int": lambda tier, copy: tier.begin_backup("b", [[], [], [True]]),
    "a name that is no word": lambda tier, copy: tier.begin_backup(NO_WORD, [[], [], [1]]),
    "slots of no copy": lambda tier, copy: tier.begin_load("l", NO_COPY),
    "a drop of no copy": lambda tier, copy: tier.drop(NO_COPY),
    "slots of two bands": lambda tier, copy: tier.begin_load("l", HostCopy(copy.slots[1:])),
    "rows without pages": lambda tier, copy: tier.begin_load("l", HostCopy((*copy.slots[:2], ()))),
    "slots of one band": lambda tier, copy: tier.drop(HostCopy(copy.slots[2:])),
    "a layer group too many": lambda tier, copy: tier.order_forward(Stream.FORWARD, [], 1),
    "a layer group below 0": lambda tier, copy: tier.order_forward(Stream.FORWARD, [], -1),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_an_argument_that_means_nothing_is_refused(what: str) -> None:
    engine = engine_of()
    copy = engine.kept[0][0]
    engine.refused(ArgumentError, lambda: ARGUMENTS[what](engine.tier, copy))


@pytest.mark.parametrize(
    "act",
    [
        HostTier.submit_backup,
        HostTier.name_rows,
        HostTier.submit_load,
        HostTier.acknowledge,
        HostTier.cancel,
        lambda tier, name: tier.order_forward(Stream.FORWARD, [name], 0),
    ],
)
def test_a_name_that_is_no_word_is_refused(act: Callable[[HostTier, str], object]) -> None:
    engine = engine_of()
    text = engine.refused(ArgumentError, lambda: act(engine.tier, NO_WORD))
    assert "allowed: a str" in text


@pytest.mark.parametrize("counts", [[1, 1], [0, 2, 1], [2, 0, 1], [0, 0, -1], [0, 0, True]])
def test_a_load_of_counts_that_mean_nothing_is_refused(counts: list[int]) -> None:
    engine = engine_of()
    engine.refused(ArgumentError, lambda: engine.chain.fits_load(counts))
    engine.refused(ArgumentError, lambda: engine.chain.take_for_load(counts))
