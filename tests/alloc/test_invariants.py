"""Levels, the registry, and for each rule a storage that breaks it while it answers its caller."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.alloc.small_chain import DiaryDevice, layout_of, run_step, states, tokens, window
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.checked import CheckedChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, ClearanceTable, InFlight, Toucher
from unikv.alloc.invariants import (
    COUNT_CONSERVATION,
    FREE_OF_BOUND_PAGE,
    REGISTRY,
    TAKE_AFTER_YES,
    Finding,
    InvariantLevel,
    Invariants,
    invariant_table,
    level_from_environment,
)
from unikv.alloc.use import Use
from unikv.device.port import HostLayout, Stream
from unikv.errors import LISTED, InvariantError, SettingError, Shortage
from unikv.ids.unit_ids import Operation
from unikv.memory.host import SlotState
from unikv.requests import RequestTable
from unikv.storage import KVStorage
from unikv.trace.still_device import StillDevice

OFF, WARN, STRICT = InvariantLevel
CHECKED = (WARN, STRICT)
LAYOUT = layout_of(52, 4, states("state"), window("window"), tokens("full"))
STATE, WINDOW, FULL = range(3)


def storage_at(
    level: InvariantLevel, clearance: ClearanceTable = CLEARANCE
) -> tuple[KVStorage, DiaryDevice]:
    """A storage with three pages and two slots taken, and its device."""
    device = DiaryDevice(LAYOUT)
    storage = KVStorage(LAYOUT, device, clearance, Invariants(level))
    storage.chain.take(3, 2)
    return storage, device


def without(toucher: Toucher, in_flight: InFlight) -> ClearanceTable:
    """The table, with one cell that asks for nothing."""
    return {**CLEARANCE, (toucher, in_flight): Clearance.NONE}


class Optimist(CheckedChainAllocator):
    """Says yes to everything."""

    def fits(self, pages: int, slots: int) -> bool:
        """Yes."""
        return True


class Curious(CheckedChainAllocator):
    """Asks the device whether it is done with what the stream was just told to wait for."""

    def _begin(self, name: str) -> Operation:
        event = self.device.record_event(Stream.SCHEDULE)
        self.device.wait_event(Stream.SCHEDULE, event)
        self.device.query(event)
        return super()._begin(name)


class Patient(DiaryDevice):
    """A device that may be asked."""

    def query(self, event: object) -> bool:
        """Everything has happened."""
        return True


def free_a_bound_page(level: InvariantLevel) -> None:
    """A page goes back to the free ones while its id still names it."""
    storage, _ = storage_at(level)
    band = storage.chain.bands[WINDOW]
    band.release_live([band.ids.forward[2]])
    storage.chain.fits(1, 0)


def hand_out_under_a_forward(level: InvariantLevel) -> None:
    """A page freed under a running step is a hole at once, and somebody takes it."""
    storage, device = storage_at(level, without(Toucher.HAND_OUT, InFlight.FORWARD))
    run_step(storage.chain, device, 1)
    storage.chain.free([1])
    storage.chain.take(1, 0)


def move_a_written_page(level: InvariantLevel) -> None:
    """A page moves while a running step writes it, and nobody waits."""
    storage, device = storage_at(level, without(Toucher.MOVE_SOURCE, InFlight.FORWARD))
    run_step(storage.chain, device, 1, [2], [], [])
    storage.chain.process_step(1)
    storage.chain.free_slots([1])
    run_step(storage.chain, device, 2, [2], [], [])
    storage.chain.flush(1)


def lose_count(level: InvariantLevel) -> None:
    """A band believes in a hole that is not there."""
    storage, _ = storage_at(level)
    storage.chain.bands[WINDOW].holes += 1
    storage.chain.fits(1, 0)


def cross_spans(level: InvariantLevel) -> None:
    """The state band claims what the float has."""
    storage, _ = storage_at(level)
    storage.chain.bands[STATE].claim(1, 8)
    storage.chain.fits(0, 0)


def lose_bytes(level: InvariantLevel) -> None:
    """A copy is recorded over bytes that the arena does not have."""
    storage, _ = storage_at(level)
    storage.chain.ledger.fences.add(Use.COPY_READ, ((48, 56),), object())
    storage.chain.fits(0, 0)


def keep_an_old_snapshot(level: InvariantLevel) -> None:
    """A band grows and does not say so."""
    storage, _ = storage_at(level)
    band = storage.chain.bands[FULL]
    band.claim(9, 13)
    band.revision -= 1
    storage.chain.fits(0, 0)


def refuse_after_a_yes(level: InvariantLevel) -> None:
    """The question is answered yes and the take is refused."""
    chain = Optimist(LAYOUT, DiaryDevice(LAYOUT), Invariants(level))
    with pytest.raises(Shortage):
        chain.take(50, 0)


def let_two_ids_name_a_page(level: InvariantLevel) -> None:
    """An id that nobody minted names the page of another."""
    storage, _ = storage_at(level)
    forward = storage.chain.bands[FULL].ids.forward
    forward[7] = forward[1]
    storage.chain.translate(FULL, [7])


def settle_without_a_wait(level: InvariantLevel) -> None:
    """A step counts as settled, but the schedule stream never waited for it."""
    storage, device = storage_at(level)
    run_step(storage.chain, device, 1)
    storage.chain.steps.settled_through = 1
    storage.chain.fits(0, 0)


def leave_a_batch_behind(level: InvariantLevel) -> None:
    """The last step is processed, and a page still waits for it."""
    storage, _ = storage_at(level)
    band = storage.chain.bands[WINDOW]
    pages = band.ids.unbind([2], Operation(1, "retire"))
    band.pend_live(pages)
    band.pending_pages.add(1, pages)
    storage.chain.translate(WINDOW, [])


def read_behind_a_wait(level: InvariantLevel) -> None:
    """The host asks for an event right after it made the stream wait for it."""
    Curious(LAYOUT, Patient(LAYOUT), Invariants(level)).take(1, 0)


def hold_a_free_row(level: InvariantLevel) -> None:
    """A row is given back twice, behind the table's back."""
    storage, _ = storage_at(level)
    row = storage.requests.take()
    storage.requests._free.append(row)
    storage.requests.append(row, [1])


def overfill_a_row(level: InvariantLevel) -> None:
    """A row names more pages than kernels will look at."""
    storage, _ = storage_at(level)
    row = storage.requests.take()
    storage.requests.rows[row] = [1] * (LAYOUT.row_pages + 1)
    storage.requests.take()


def fill_a_slot_twice(level: InvariantLevel) -> None:
    """A slot that a backup fills is handed out to another one."""
    layout = LAYOUT._replace(host=(HostLayout(8, (FULL,)),))
    storage = KVStorage(layout, StillDevice(), invariants=Invariants(level))
    assert storage.host is not None
    ids = [[], [], storage.chain.take(2, 0).ids[:1]]
    storage.host.begin_backup("first", ids)
    storage.host.memory.pools[FULL]._states[0] = SlotState.FREE
    storage.host.begin_backup("second", ids)


BROKEN: Mapping[str, Callable[[InvariantLevel], None]] = {
    "band.free_of_bound_page": free_a_bound_page,
    "band.handout_of_used_page": hand_out_under_a_forward,
    "band.move_of_written_page": move_a_written_page,
    "band.count_conservation": lose_count,
    "chain.bands_disjoint": cross_spans,
    "chain.byte_conservation": lose_bytes,
    "chain.capacity_epoch": keep_an_old_snapshot,
    "chain.take_after_yes": refuse_after_a_yes,
    "ids.map_bijective": let_two_ids_name_a_page,
    "steps.order": settle_without_a_wait,
    "steps.idle_has_no_pending_batch": leave_a_batch_behind,
    "operation.read_after_wait": read_behind_a_wait,
    "requests.row_state": hold_a_free_row,
    "requests.length_bounds": overfill_a_row,
    "host.slot_unique": fill_a_slot_twice,
}
FATAL = [name for name in BROKEN if REGISTRY[name].fatal]
MILD = [name for name in BROKEN if not REGISTRY[name].fatal]


def test_each_rule_has_a_storage_that_breaks_it() -> None:
    assert set(BROKEN) == set(REGISTRY)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_raises_at_the_strict_level(name: str) -> None:
    with pytest.raises(InvariantError) as raised:
        BROKEN[name](STRICT)
    assert raised.value.name == name
    assert str(raised.value).startswith(f"{name}: ")


@pytest.mark.parametrize("name", FATAL)
def test_a_broken_fatal_rule_raises_at_the_level_that_warns(name: str) -> None:
    with pytest.raises(InvariantError) as raised:
        BROKEN[name](WARN)
    assert raised.value.name == name


@pytest.mark.parametrize("name", MILD)
def test_any_other_broken_rule_is_logged_at_the_level_that_warns(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    BROKEN[name](WARN)
    assert any(record.getMessage().startswith(f"{name}: ") for record in caplog.records)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_mild_rule_is_logged_once_by_name(caplog: pytest.LogCaptureFixture) -> None:
    invariants = Invariants(WARN)
    for what in ("first", "second"):
        invariants.report([Finding(COUNT_CONSERVATION, "band 'full'", what)])
    assert len(caplog.records) == 1
    assert "first" in caplog.text
    assert invariants.seen == {"band.count_conservation"}


def test_a_storage_goes_on_after_a_mild_rule_is_broken() -> None:
    storage, _ = storage_at(WARN)
    storage.chain.ledger.fences.add(Use.COPY_READ, ((48, 56),), object())
    assert storage.chain.take(1, 0).ids == [4]


def test_the_fatal_finding_is_named_before_its_consequences() -> None:
    mild = Finding(COUNT_CONSERVATION, "band 'full'", "counts 3, but the pages are 2")
    fatal = Finding(FREE_OF_BOUND_PAGE, "band 'full'", "bound pages are a hole", (7,), (2,))
    with pytest.raises(InvariantError) as raised:
        Invariants(STRICT).report([mild, fatal])
    assert raised.value.name == "band.free_of_bound_page"
    assert raised.value.others == (str(mild),)
    assert str(raised.value) == (
        "band.free_of_bound_page: band 'full': bound pages are a hole; pages 7; ids 2; the storage"
        " can no longer be trusted: record the calls with unikv.trace.record and replay them\n"
        "  also band.count_conservation: band 'full': counts 3, but the pages are 2"
    )


def test_a_finding_counts_what_it_does_not_list() -> None:
    found = Finding(COUNT_CONSERVATION, "band 'full'", "wrong", tuple(range(LISTED + 3)))
    assert str(found).endswith("10, 11 and 3 more")


def test_nothing_is_reported_at_the_level_off(caplog: pytest.LogCaptureFixture) -> None:
    Invariants(OFF).report([Finding(FREE_OF_BOUND_PAGE, "band 'full'", "broken")])
    assert caplog.records == []


def test_a_storage_whose_level_is_off_is_made_of_the_plain_parts() -> None:
    storage, device = storage_at(OFF)
    assert type(storage.chain) is ChainAllocator
    assert type(storage.requests) is RequestTable
    assert storage.chain.device is device


@pytest.mark.parametrize("level", CHECKED)
def test_a_storage_whose_level_is_on_is_made_of_checked_parts(level: InvariantLevel) -> None:
    storage, _ = storage_at(level)
    assert isinstance(storage.chain, CheckedChainAllocator)
    assert storage.chain.invariants.level is level


@pytest.mark.parametrize("level", InvariantLevel)
def test_a_level_is_read_from_its_number(level: InvariantLevel) -> None:
    assert level_from_environment({"UNIKV_INVARIANT_CHECK": str(level.value)}) is level


def test_an_environment_without_the_variable_means_off() -> None:
    assert level_from_environment({"PATH": "2"}) is OFF


@pytest.mark.parametrize("text", ["", "3", "-1", "strict", "1 ", "02", "True"])
def test_any_other_value_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(SettingError) as raised:
        level_from_environment({"UNIKV_INVARIANT_CHECK": text})
    assert str(raised.value) == (
        f"UNIKV_INVARIANT_CHECK is {text!r}; allowed: 0 (off), 1 (warn), 2 (strict); set one of"
        " them or unset it"
    )


def test_a_storage_asks_the_environment_for_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNIKV_INVARIANT_CHECK", "2")
    storage = KVStorage(LAYOUT, DiaryDevice(LAYOUT))
    assert isinstance(storage.chain, CheckedChainAllocator)


def test_names_say_the_part_before_the_rule() -> None:
    parts = {"band", "chain", "ids", "steps", "operation", "requests", "host"}
    assert {name.split(".")[0] for name in REGISTRY} == parts
    assert all(rule.name == name for name, rule in REGISTRY.items())


def test_the_documentation_has_the_table_that_the_code_makes() -> None:
    page = Path(__file__).parents[2] / "docs" / "notes" / "invariants.md"
    text = page.read_text(encoding="utf-8")
    _, _, rest = text.partition("<!-- registry -->\n")
    table, _, _ = rest.partition("<!-- end of registry -->")
    assert table == invariant_table()


def test_a_take_after_a_no_breaks_the_same_rule() -> None:
    class Pessimist(CheckedChainAllocator):
        """Says no to everything."""

        def fits(self, pages: int, slots: int) -> bool:
            """No."""
            return False

    chain = Pessimist(LAYOUT, DiaryDevice(LAYOUT), Invariants(STRICT))
    with pytest.raises(InvariantError, match=TAKE_AFTER_YES.name):
        chain.take(1, 0)
