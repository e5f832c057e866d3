"""A checked allocator: what it sees while a call runs, and that it flags nothing on clean runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from benchmarks.search.lending_engine import LendingEngine
from benchmarks.search.lending_player import Player, random_layout
from harness.loading import load_scenario
from harness.runner import run_seed
from tests.alloc.small_chain import DiaryDevice, layout_of, run_step, states, tokens, window
from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.checked import (
    CheckedChainAllocator,
    CheckedRequestTable,
    CheckedTranslation,
    CheckedUsers,
)
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.invariants import InvariantLevel, Invariants
from unikv.alloc.relief import Relief
from unikv.alloc.witness import HARMLESS, RULES
from unikv.device.port import StorageLayout, Stream
from unikv.errors import InvariantError, OwnershipError, StepOrderError
from unikv.ids.translation import Translation
from unikv.requests import RequestTable
from unikv.trace.still_device import StillDevice

LAYOUT = layout_of(52, 4, states("state"), window("window"), tokens("full"))
STATE, WINDOW, FULL = range(3)
HAND_OUT, MOVE = Toucher.HAND_OUT, Toucher.MOVE_SOURCE

NETWORK_MOVE = (MOVE, InFlight.NETWORK)
"""The host waits and then ends the transfer in the ledger, so its end cannot be told from a lie."""
UNKNOWN_HAND_OUT = (HAND_OUT, InFlight.UNKNOWN_FORWARD)
"""Freed pages pend under a step whatever it writes, so the allocator has one rule for both."""

Cell = tuple[Toucher, InFlight]


def checked(*without: Cell) -> tuple[CheckedChainAllocator, DiaryDevice]:
    """Three pages and three slots taken, where some cells of the table ask for nothing."""
    device = DiaryDevice(LAYOUT)
    table = {**CLEARANCE, **dict.fromkeys(without, Clearance.NONE)}
    chain = CheckedChainAllocator(LAYOUT, device, Invariants(InvariantLevel.STRICT), table)
    chain.take(3, 3)
    return chain, device


def take_freed_under_a_forward(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """A slot is freed under a step that only reads it, and taken again."""
    run_step(chain, device, 1)
    chain.free_slots([2])
    chain.take(0, 1)


def take_bytes_that_changed_bands(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """Freed pages leave their band at once, and another band takes the bytes."""
    run_step(chain, device, 1)
    chain.free([1, 2, 3])
    chain.take(0, 7)


def move_written(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """A flush copies a slot that a step writes."""
    chain.free_slots([1])
    run_step(chain, device, 1, [3], [], [])
    chain.flush(1)


def move_under_an_unknown_step(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """A flush copies a slot while a step may write any."""
    chain.free_slots([1])
    chain.launch_step(1)
    chain.record_step_of_unknown_writes(1, object())
    chain.flush(1)


def take_under_a_backup(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """A slot is freed while a copy to the host reads it, and taken again."""
    chain.users.begin_backup([[2], [], []], object())
    chain.free_slots([2])
    chain.take(0, 1)


def take_under_a_load(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """A slot is freed while a copy from the host fills it, and taken again."""
    chain.users.begin_load([[2], [], []], object())
    chain.free_slots([2])
    chain.take(0, 1)


def move_under_a_load(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """A flush copies a slot that is being filled."""
    chain.free_slots([1])
    chain.users.begin_load([[3], [], []], object())
    chain.flush(1)


def take_under_a_send(chain: CheckedChainAllocator, device: DiaryDevice) -> None:
    """A slot is freed while a peer is being sent it, and taken again."""
    chain.users.begin_send("send", [[2], [], []])
    chain.free_slots([2])
    chain.take(0, 1)


PLANTED: Mapping[Cell, Callable[[CheckedChainAllocator, DiaryDevice], None]] = {
    (HAND_OUT, InFlight.FORWARD): take_freed_under_a_forward,
    (HAND_OUT, InFlight.BACKUP): take_under_a_backup,
    (HAND_OUT, InFlight.LOAD): take_under_a_load,
    (HAND_OUT, InFlight.NETWORK): take_under_a_send,
    (MOVE, InFlight.FORWARD): move_written,
    (MOVE, InFlight.UNKNOWN_FORWARD): move_under_an_unknown_step,
    (MOVE, InFlight.LOAD): move_under_a_load,
}


each_cell = pytest.mark.parametrize(
    "cell", PLANTED, ids=[f"{toucher.value}, {in_flight.value}" for toucher, in_flight in PLANTED]
)


def test_each_cell_that_asks_for_something_is_planted() -> None:
    asking = {cell for cell, rule in CLEARANCE.items() if cell[0] in RULES and rule not in HARMLESS}
    assert set(PLANTED) | {NETWORK_MOVE, UNKNOWN_HAND_OUT} == asking


@each_cell
def test_a_cell_that_asks_for_nothing_is_seen(cell: Cell) -> None:
    chain, device = checked(cell)
    with pytest.raises(InvariantError) as raised:
        PLANTED[cell](chain, device)
    assert raised.value.name == RULES[cell[0]].name


@each_cell
def test_the_same_calls_are_clean_by_the_whole_table(cell: Cell) -> None:
    PLANTED[cell](*checked())


def test_bytes_are_followed_into_another_band() -> None:
    chain, device = checked((HAND_OUT, InFlight.FORWARD))
    with pytest.raises(InvariantError, match="given up under step 1") as raised:
        take_bytes_that_changed_bands(chain, device)
    assert raised.value.name == "band.handout_of_used_page"


def test_a_settle_that_enqueues_no_wait_is_seen() -> None:
    class Hasty(ForwardSteps):
        """Believes in waits that it never asked for."""

        __slots__ = ()

        def wait(self, number: int) -> bool:
            """Nothing but the belief."""
            self.settled_through = max(self.settled_through, number)
            return True

    chain, device = checked()
    chain.steps.__class__ = Hasty
    run_step(chain, device, 1)
    chain.free_slots([2])
    with pytest.raises(InvariantError) as raised:
        chain.take(0, 1)
    assert raised.value.name == "band.handout_of_used_page"


def test_a_copy_is_judged_before_it_is_enqueued() -> None:
    chain, device = checked((MOVE, InFlight.FORWARD))
    with pytest.raises(InvariantError):
        move_written(chain, device)
    assert device.named("move") == []


def test_a_refused_call_is_audited_too() -> None:
    chain, _ = checked()
    chain.bands[WINDOW].holes += 1
    with pytest.raises(InvariantError, match="counts") as raised:
        chain.free([50])
    assert isinstance(raised.value.__context__, OwnershipError)


def test_a_refusal_of_a_sound_allocator_stays_what_it_is() -> None:
    chain, device = checked()
    with pytest.raises(OwnershipError):
        chain.free([50])
    chain.launch_step(1)
    with pytest.raises(StepOrderError):
        chain.take(1, 0)
    with pytest.raises(ValueError, match="counts are 0 or more"):
        chain.take(-1, 0)
    assert device.named("move") == []


class Peers:
    """Transfers that end as soon as somebody waits for them, and are isolated at that."""

    chain: ChainAllocator

    def wait(self, names: Sequence[str]) -> None:
        """They are over; the call that says so is made inside another one."""
        for name in names:
            self.chain.users.isolate(name)


class SettlesFirst(Relief):
    """A relief that lets a stream wait before the host does."""

    __slots__ = ()

    def _end_transfers(self, demand: Sequence[int]) -> None:
        self._reclaim.settle_all()
        super()._end_transfers(demand)


class WaitsAgain(Relief):
    """A relief that lets a stream wait before the host waits for the second time."""

    __slots__ = ()

    def _end_transfers(self, demand: Sequence[int]) -> None:
        super()._end_transfers(demand)
        self._reclaim.settle_all()
        super()._end_transfers(demand)


def relieved(relief: type[Relief]) -> None:
    """Slots take the place of a float whose page is being sent, under a running step."""
    device, strict = DiaryDevice(LAYOUT), Invariants(InvariantLevel.STRICT)
    peers = Peers()
    peers.chain = chain = CheckedChainAllocator(LAYOUT, device, strict, waiter=peers)
    chain.relief.__class__ = relief
    chain.take(2, 2)
    chain.take(0, 3)
    chain.users.begin_send("transfer", [[], [1], []])
    run_step(chain, device, 1)
    chain.free_slots([2])
    chain.take(0, 2)


def test_a_wait_for_transfers_is_a_host_read() -> None:
    relieved(Relief)
    with pytest.raises(InvariantError, match=r"operation\.read_after_wait: .*wait for transfers"):
        relieved(SettlesFirst)


def test_a_call_inside_another_one_ends_no_rule_of_the_outer_one() -> None:
    with pytest.raises(InvariantError, match=r"read_after_wait: call take: wait for transfers"):
        relieved(WaitsAgain)


def test_waits_of_the_engine_between_calls_are_its_own_affair() -> None:
    chain = CheckedChainAllocator(LAYOUT, StillDevice(), Invariants(InvariantLevel.STRICT))
    event = chain.device.record_event(Stream.FORWARD)
    chain.device.wait_event(Stream.SCHEDULE, event)
    chain.device.host_wait(event)
    assert chain.take(0, 1).slots == [1]


@pytest.mark.parametrize(
    ("plain", "full"),
    [
        (ChainAllocator, CheckedChainAllocator),
        (AsyncUsers, CheckedUsers),
        (RequestTable, CheckedRequestTable),
        (Translation, CheckedTranslation),
    ],
)
def test_every_call_of_the_plain_part_is_checked(plain: type[object], full: type[object]) -> None:
    reading = {
        "statistics",
        "move_epochs",
        "free_rows",
        "held_rows",
        "free_count",
        "row_pages",
        "state_of",
    }
    calls = {name for name in vars(plain) if not name.startswith("_")} - reading
    slots = set(getattr(plain, "__slots__", ()))
    assert calls - slots <= set(vars(full))


class CheckedEngine(LendingEngine):
    """An engine on a chain that raises at the first broken rule."""

    def __init__(self, layout: StorageLayout) -> None:
        super().__init__(layout)
        strict = Invariants(InvariantLevel.STRICT)
        self.chain = CheckedChainAllocator(layout, self.device, strict, waiter=self)


@pytest.mark.parametrize("seed", range(30))
def test_no_rule_is_broken_by_an_engine_that_lends_its_pages(seed: int) -> None:
    rng = Random(seed)
    Player(rng, CheckedEngine(random_layout(rng))).play(30)


def test_a_checked_run_is_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).parents[2] / "scenarios" / "hybrid.yaml"
    scenario = load_scenario(path)
    plain = run_seed(scenario, "hybrid", 3, 60)
    monkeypatch.setenv("UNIKV_INVARIANT_CHECK", "2")
    full = run_seed(scenario, "hybrid", 3, 60)
    assert full.violations == ()
    assert full.digest == plain.digest
