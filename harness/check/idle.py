"""Idle: at rest nothing is pending, in use or leaked.

Runs after everything was recorded, processed and drained.  What requests and cached prefixes still
hold is live; nothing else is claimed for a reason that has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from harness.check import broken
from harness.subject import HostSubject, NetworkSubject
from harness.violation import Violation, byte_sites, id_sites, page_sites
from harness.words import apart, band_text, bytes_text, counted, joined, which_pages
from harness.world import World

REFUSALS_MAX = 3
"""How often an engine may refuse to be told to stop and still have its proof at rest."""


def examine(world: World) -> list[Violation]:
    """What is left over at rest."""
    if not world.at_rest:
        return []
    world.check_runs["idle"] += 1
    found: list[Violation] = []
    subject = world.subjects[0]
    for band, part in enumerate(world.layout.bands):
        live, holes, pending, fixed = world.books[band].counts
        reserved, stuck = len(world.truth.reserved[band]), len(world.truth.transfers.stuck[band])
        if pending != stuck or fixed != reserved:
            text = (
                f"band {part.name!r}: {pending} pages pending and {stuck} of them in quarantine,"
                f" {fixed} fixed and {reserved} of them for a load in preparation"
            )
            found.append(broken(world, "idle", "pages left over", text))
        if subject.shares_bytes and not live and not fixed and not pending and holes:
            text = f"band {part.name!r}: {holes} holes, no page"
            found.append(broken(world, "idle", "span left over", text))
    uses = subject.uses()
    if uses:
        kind, band, pages, step = uses[0]
        text = (
            f"{counted(len(uses), 'use')} left at rest; the first: {kind}, step {step},"
            f" {which_pages(pages)} of {band_text(world.layout.bands, band)}"
        )
        sites = page_sites(band, pages)
        found.append(broken(world, "idle", "uses left over", text, sites))
    host, network = world.host_subject, world.network_subject
    copies = host.copies() if host is not None else ()
    if copies:
        first = f"{copies[0].kind} of {bytes_text(copies[0].ranges)}"
        text = f"{len(copies)} copies in use at rest, the first {first}"
        sites = byte_sites(low_high for copy in copies for low_high in copy.ranges)
        found.append(broken(world, "idle", "copies left over", text, sites))
    if network is not None:
        _compare_transfers(world, network, found)
        _compare_known(world, found)
    _compare_remembered(world, found)
    _compare_holders(world, found)
    rows = sum(request.row >= 0 for request in world.requests.values())
    assert rows == len(world.running) + len(world.waiting), "the engine lost its count"
    if subject.free_rows() + rows != world.setup.rows:
        text = (
            f"of {world.setup.rows} request rows the allocator has {subject.free_rows()} free, and"
            f" requests hold {rows}"
        )
        found.append(broken(world, "idle", "rows leaked", text))
    return found


def _compare_transfers(world: World, network: NetworkSubject, found: list[Violation]) -> None:
    """Transfers that are not over, and peers that wait for an answer."""
    quarantined = network.quarantined()
    left = sorted(world.transfers.ending() - _unproved(world, quarantined))
    if left:
        text = (
            f"at rest, {joined(left)} should be over; in quarantine, so not proved quiet:"
            f" {joined(quarantined)}"
        )
        found.append(broken(world, "idle", "transfers left over", text))
    owed = {(name, peer) for (_, name, peer), count in world.transfers.owed.items() if count}
    silent = sorted((name, peer) for name, peer in owed if name not in world.transfers.names())
    if silent:
        whom = joined(f"{peer} of {name}" for name, peer in silent)
        text = f"no rank has told {whom} that the transfer is quiet"
        found.append(broken(world, "idle", "peers left without an answer", text))


def _unproved(world: World, quarantined: Sequence[str]) -> set[str]:
    """What may be in quarantine at rest: nothing, unless engines were deaf for too long."""
    setup = world.setup.network
    is_deaf = setup is not None and setup.refusals > REFUSALS_MAX
    return set(quarantined) if is_deaf else set()


def _compare_known(world: World, found: list[Violation]) -> None:
    """Transfer engines know exactly the transfers of which they were handed parts, to their end."""
    assert world.network is not None
    known, begun = set(world.network.handed), set(world.truth.transfers.handed)
    if known != begun:
        text = _remembered("an engine", known - begun, begun - known)
        found.append(broken(world, "idle", "engines know other transfers", text))


def _compare_remembered(world: World, found: list[Violation]) -> None:
    """What a rank keeps of copies and transfers is of those that are not over, or cannot come."""
    host = world.host
    copies = set(host.backups) | set(host.loads)
    transfers = set(world.transfers.names())
    for rank, subject in enumerate(world.subjects):
        if world.host_subject is not None:
            kept = set(cast(HostSubject, subject).remembered_copies())
            _compare_names(world, found, f"rank {rank}", "copies", (kept, copies, set()))
        if world.network_subject is not None:
            kept = set(cast(NetworkSubject, subject).remembered_transfers())
            names = (kept, transfers, world.transfers.vetoed)
            _compare_names(world, found, f"rank {rank}", "transfers", names)


def _compare_names(
    world: World, found: list[Violation], rank: str, what: str, names: tuple[set[str], ...]
) -> None:
    """Both directions.

    Args:
        what: copies or transfers.
        names: those that the rank keeps something of, those that are not over, and those of which
            something may be kept beside them.
    """
    kept, unfinished, allowed = names
    if kept - unfinished - allowed or unfinished - kept:
        text = _remembered(rank, kept - unfinished - allowed, unfinished - kept)
        found.append(broken(world, "idle", f"{what} remembered", text))


def _remembered(who: str, over: set[str], lost: set[str]) -> str:
    """What somebody keeps of things that are over, and has lost of things that are not."""
    parts = ("still remembers what is over", over), ("has forgotten what is not over", lost)
    told = [f"{what}: {joined(sorted(names))}" for what, names in parts if names]
    return f"{who} {'; it '.join(told)}"


def _compare_holders(world: World, found: list[Violation]) -> None:
    """Every id and slot that is handed out is wanted by a request or a cached prefix."""
    requests, prefixes = world.requests.values(), world.prefixes.values()
    wanted = {world.owner_band: {unit for holder in requests for unit in holder.pages}}
    wanted[world.owner_band] |= {unit for prefix in prefixes for unit in prefix.pages}
    if world.state_band >= 0:
        slots = world.states.wanted(requests) | {prefix.slot for prefix in prefixes}
        wanted[world.state_band] = slots - {0}
    for band, units in wanted.items():
        held = {unit for unit, is_held in enumerate(world.truth.held[band]) if is_held}
        if held != units:
            name = world.layout.bands[band].name
            said = apart(
                ("ids", held - units, "are handed out and nobody's"),
                ("ids", units - held, "are somebody's and not handed out"),
            )
            sites = id_sites(band, held ^ units)
            found.append(broken(world, "idle", "ids leaked", f"band {name!r}: {said}", sites))
