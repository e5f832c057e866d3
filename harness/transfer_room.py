"""Capacity beside transfers: no wait, no move of a hold and no refusal that nothing asks for.

A take waits for transfers only where no layout leaves their pages alone, for no more of them than
must move, and until they are quiet; it moves the rows of a receive only where nothing else works.
What needs which is asked of the search of all layouts, and what engines have said of the network;
the allocator's own account is not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from harness.check import effects
from harness.check.capacity import layout_with_pins
from harness.values import call_text
from harness.violation import Site, first_sites, page_sites
from harness.words import counted, demand_text, joined
from unikv.errors import Shortage, TransferError

if TYPE_CHECKING:
    from harness.peers import Handed, Network
    from harness.world import World

Part = tuple[str, int]
"""A transfer and the number of one of its parts."""


@dataclass(slots=True)
class RoomCall:
    """A call that is being made and may make room.

    Attributes:
        demand: pages of every band that it asks for.
        holds_may_move: whether receive holds had to move when the first of them did; None before.
    """

    demand: tuple[int, ...]
    holds_may_move: bool | None = None


def ask(world: World, demand: tuple[int, ...], call: Sequence[Any]) -> Any:
    """Make a call that may move pages or wait for transfers; its answer, which is judged.

    Args:
        demand: pages of every band that it asks for.
        call: its name, then its arguments.
    """
    # What a wait of the call itself gives up comes too late to keep out what it begins.
    closed = _closed(world, call[2]) if call[0] == "begin_receive" else ""
    submitted, before = len(world.ports[0].log), world.books
    world.room = RoomCall(demand)
    try:
        answer = world.ask(*call)
    finally:
        world.room = None
    if answer is False or isinstance(answer, (Shortage, TransferError)):
        effects.after_refusal(world, call[0], submitted, before)
    if isinstance(answer, TransferError):
        world.probes["transfer_not_waited_out"] += 1
        _judge_refusal(world, call, closed)
    elif not isinstance(answer, Shortage):
        _judge_admission(world, call, closed)
    return answer


def begin_send(world: World, name: str, peer: str) -> bool:
    """Announce a send to every rank; whether it was not refused."""
    call, closed = ("begin_send", name, peer), _closed(world, peer)
    if isinstance(world.ask(*call), TransferError):
        world.probes["send_refused"] += 1
        _judge_refusal(world, call, closed)
        return False
    _judge_admission(world, call, closed)
    return True


def before_a_wait(world: World, parts: Sequence[Part]) -> None:
    """Note a wait that some layout makes needless, and one for more than has to move.

    Args:
        parts: what is waited for, in the order in which it is named.
    """
    transfers = world.truth.transfers
    begun = {part: number for number, part in enumerate(transfers.begun)}
    oldest_first = sorted(parts, key=lambda part: begun.get(part, -1))
    if list(parts) != oldest_first:
        text = (
            f"the host waits for {_listed(parts)}; every rank has to say the same, so expected is"
            f" the order in which they began: {_listed(oldest_first)}"
        )
        world.truth.note("divergence", "wait in an order of its own", text)
    if world.room is None:
        return
    world.check_runs["capacity"] += 1
    if not parts or _has_room(world, ()):
        text = "but a layout holds them that leaves the pages of every transfer alone"
        _note_wait(world, parts, "wait that no layout needs", text)
    elif not any(_must_move(world, moving) for moving in _moving(world, set(parts))):
        text = "where only those need be waited for whose bands cannot stay as they are"
        _note_wait(world, parts, "wait for more than has to move", text)


def _note_wait(world: World, parts: Sequence[Part], detail: str, why: str) -> None:
    assert world.room is not None
    demand = demand_text(world.layout.bands, world.room.demand)
    text = f"for {demand} the host waits for {_listed(parts)}, {why}"
    world.truth.note("capacity", detail, text, _sites(world, [name for name, _ in parts]))


def waits_apart(world: World, rank: int, parts: Sequence[Part]) -> None:
    """Note a rank that waits for other parts than the first, or names them in another order."""
    network = world.network
    assert network is not None
    text = f"rank {rank} waits for {_listed(parts)}; rank 0 for {_listed(network.waited)}"
    world.truth.note("divergence", "ranks wait for other transfers", text)


def after_a_wait_in_vain(world: World, waited: Collection[str], asked: int) -> None:
    """Note a wait that was given up before the host's patience was at its end."""
    network = world.network
    assert network is not None
    if asked < network.patience:
        text = f"the wait for {', '.join(waited)} is given up after {counted(asked, 'round')}"
        text += f"; expected are {network.patience}, as long as some rank's engine is not quiet"
        world.truth.note("capacity", "wait given up early", text, _sites(world, waited))


def while_waiting(world: World, waited: Collection[str]) -> None:
    """Note that the host goes on waiting, or has given up, though the engines have said enough.

    Called after every rank has spoken: before it is asked again, and when the wait was in vain.
    """
    network = world.network
    assert network is not None
    world.check_runs["capacity"] += 1
    if not waited:
        return  # noted when it began
    entries = {name: network.handed[name] for name in waited if name in network.handed}
    quiet = {name for name, entry in entries.items() if _is_quiet(network, entry)}
    if len(quiet) == len(entries):
        text = f"every rank's engine has said that {', '.join(waited)} is quiet, and the wait"
        sites = _sites(world, waited)
        world.truth.note("capacity", "wait for quiet transfers", f"{text} is not over", sites)
    for name, entry in entries.items():
        if name in quiet or entry.is_stopped:
            continue
        reasons = [f"has failed on rank {rank}" for rank in sorted(entry.failed)]
        reasons += ["the scheduler has given up"] * (name in world.transfers.given_up)
        reasons += ["a peer has given up"] * (name in world.transfers.told)
        if reasons:
            text = (
                f"the host waits for {name}, which {joined(reasons)}; expected is that its engines"
                " are told to stop in the same round"
            )
            world.truth.note("capacity", "wait for a failed transfer", text, _sites(world, [name]))


def before_moves(world: World, band: int, sources: Sequence[int]) -> None:
    """Note that rows move which wait for a peer, where something else would do."""
    truth, room = world.truth, world.room
    owner, held = truth.owner[band], truth.transfers.held
    ids = {owner[page] for page in sources}
    names = sorted(name for name, units in held.items() if not ids.isdisjoint(units[band]))
    if not names:
        return
    name = world.layout.bands[band].name
    where = f"band {name!r}: pages {list(sources)} move, and one is held for {', '.join(names)}"
    sites = page_sites(band, sources)
    if room is None:
        text = f"{where}; expected is that only a relief moves what waits for a peer"
        truth.note("ownership", "held page moved by a flush", text, sites)
        return
    if room.holds_may_move is None:
        # Only now: what the same call moves later may do so because these pages have moved.
        world.check_runs["capacity"] += 1
        room.holds_may_move = not layout_with_pins(world, room.demand, _held_still(world))
    if not room.holds_may_move:
        demand = demand_text(world.layout.bands, room.demand)
        text = f"{where}, but a layout for {demand} leaves every hold alone"
        truth.note("capacity", "held page moved without need", text, sites)


def _judge_refusal(world: World, call: Sequence[Any], closed: str) -> None:
    """Note a call refused for transfers without a wait in vain, a full board or quarantine."""
    network, was_in_vain = world.network, False
    if network is not None:
        was_in_vain, network.was_in_vain = network.was_in_vain, False
    if not was_in_vain and not closed:
        asked = call_text(call[0], call[1:])
        text = f"{asked} is refused for transfers, but no wait was in vain"
        text += ", and board and quarantine have room" * call[0].startswith("begin_")
        world.truth.note("capacity", "refused for no transfer", text)


def _judge_admission(world: World, call: Sequence[Any], closed: str) -> None:
    """Note a transfer that has begun though the board, or the quarantine of its peer, was full."""
    if closed:
        text = f"{call[1]} begins with {call[2]}, though {closed}"
        world.truth.note("capacity", "transfer with a peer in quarantine", text)


def _closed(world: World, peer: str) -> str:
    """Why no transfer may begin with `peer` now, in words; empty where it may."""
    network, subject = world.network, world.network_subject
    assert network is not None
    assert subject is not None
    under_way = len(world.transfers.names())
    kept = [e for e in network.handed.values() if e.is_stopped and e.peer == peer]
    pages = sum(entry.pages for entry in kept)
    if under_way >= subject.transfers_max:
        return f"{under_way} transfers are not over, of {subject.transfers_max} at most"
    if len(kept) >= subject.quarantine_max or pages >= subject.quarantine_pages_max:
        return f"{len(kept)} transfers with {pages} of its pages are in quarantine"
    return ""


def _is_quiet(network: Network, entry: Handed) -> bool:
    """Whether every rank's engine has said so: by a proof, once it was told to stop."""
    said = entry.proved if entry.is_stopped else entry.quiet - entry.failed
    return len(said) == len(network.device.ranks)


def _moving(world: World, parts: set[Part]) -> Iterator[tuple[int, ...]]:
    """Sets of bands whose transfers, together, are exactly these parts."""
    touching: list[set[Part]] = [set() for _ in world.band_range]
    transfers = world.truth.transfers
    for name, use in transfers.uses.items():
        for number, pages in use.parts.items() if name not in transfers.isolated else ():
            for band, own in enumerate(pages):
                if own:
                    touching[band].add((name, number))
    bands = [band for band, own in enumerate(touching) if own and own <= parts]
    for count in range(1, len(bands) + 1):
        for moving in combinations(bands, count):
            if set().union(*(touching[band] for band in moving)) == parts:
                yield moving


def _must_move(world: World, moving: tuple[int, ...]) -> bool:
    """Whether these bands have to move, each of them, and nothing else has to."""
    return _has_room(world, moving) and not any(
        _has_room(world, (*moving[:index], *moving[index + 1 :])) for index in range(len(moving))
    )


def _has_room(world: World, moving: Collection[int]) -> bool:
    """Whether a layout leaves every transfer alone but those of the bands `moving`."""
    assert world.room is not None
    transfers = world.truth.transfers
    pinned = [
        transfers.kept(band) if band in moving else transfers.in_use(band)
        for band in world.band_range
    ]
    return layout_with_pins(world, world.room.demand, pinned)


def _held_still(world: World) -> list[set[int]]:
    """Per band, the pages that stay where holds and transfers are left alone."""
    transfers, maps = world.truth.transfers, world.device.program.maps
    pinned = [transfers.in_use(band) for band in world.band_range]
    for units in transfers.held.values():
        for band, ids in enumerate(units):
            pinned[band] |= {maps[band][unit] for unit in ids} - {0}
    return pinned


def _sites(world: World, names: Iterable[str]) -> tuple[Site, ...]:
    """Pages of transfers that are waited for."""
    uses = world.truth.transfers.uses
    pages = {
        (band, page)
        for name in names
        if name in uses
        for band, own in enumerate(uses[name].pages)
        for page in own
    }
    return first_sites(Site("page", band, page) for band, page in sorted(pages))


def _listed(parts: Sequence[Part]) -> str:
    return ", ".join(f"{name} part {number}" for name, number in parts) or "nothing"
