"""Ledger: the allocator's uses equal truth's, and what is in use is pending.

Both directions: a page that a running forward may touch is not free, and a page that is called
pending is one that some unprocessed forward may touch.

Settling returns whole batches and leaves no trace where the schedule stream has waited before.  So
of a page that was freed under a settled step truth knows that it pends right behind the free, and
not for how long: it may be back as soon as something was taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.check import broken
from harness.subject import HostSubject, NetworkSubject
from harness.violation import Site, Violation, byte_sites, first_sites, page_sites
from harness.words import apart, band_text, bytes_text, joined, places_text, which_pages

if TYPE_CHECKING:
    from harness.world import World

_PENDING, _FIXED = 3, 4


def freed_before(world: World) -> list[int]:
    """How many pages of each band have been freed under steps in flight, for `after_free`."""
    return list(map(len, world.truth.pending))


def after_free(world: World, name: str, before: Sequence[int]) -> None:
    """Note pages that a free has not left pending although their step is settled, not processed.

    Where the step is not settled, `examine` sees them.

    Args:
        name: the call that frees.
        before: what `freed_before` said ahead of the call, in which nothing is bound or processed.
    """
    truth = world.truth
    newest = truth.newest_recorded
    if not newest or newest > truth.retired_through:
        return
    books = None
    for band, pending in enumerate(truth.pending):
        if len(pending) == before[band]:
            continue
        books = books or world.subjects[0].books()
        states = books[band].states
        # In the order in which they were freed, so the new ones are the last.
        freed = list(pending)[before[band] :]
        early = [page for page in freed if states[page] != _PENDING]
        if early:
            text = (
                f"band {world.layout.bands[band].name!r} pages {early} are not pending behind"
                f" {name}, but step {newest} is settled and not processed, and may touch them"
            )
            sites = page_sites(band, early)
            truth.note("ledger", "free too early behind a settle", text, sites)


def examine(world: World) -> list[Violation]:
    """Pages free too early or kept too long, and writes that one account lacks."""
    found: list[Violation] = []
    truth = world.truth
    retired = truth.retired_through
    for band, pending in enumerate(truth.pending):
        states = world.books[band].states
        stuck = truth.transfers.stuck[band]
        if not pending and not stuck and _PENDING not in states:
            continue
        claimed = states.count(_PENDING)
        name = world.layout.bands[band].name
        early: dict[int, list[int]] = {}
        for page, step in pending.items():
            if states[page] == _PENDING:
                claimed -= 1
            elif step > retired and page not in stuck:
                early.setdefault(step, []).append(page)
        for step, pages in early.items():
            text = (
                f"band {name!r} pages {sorted(pages)} are not pending, but step {step}, which is"
                " neither processed nor waited for by the schedule stream, may touch them"
            )
            sites = page_sites(band, pages)
            found.append(broken(world, "ledger", "free too early", text, sites))
        for page in stuck:
            if states[page] == _PENDING:
                claimed -= page not in pending
            else:
                text = f"band {name!r} page {page} is not pending, but a peer may touch it"
                sites = page_sites(band, [page])
                found.append(broken(world, "ledger", "free under a transfer", text, sites))
        if claimed:
            pages = [
                page
                for page, state in enumerate(states)
                if state == _PENDING and page not in pending and page not in stuck
            ]
            text = f"band {name!r} pages {pages} are pending, but no step in flight can touch them"
            found.append(broken(world, "ledger", "kept too long", text, page_sites(band, pages)))
    _compare_writes(world, found, retired)
    _compare_reserved(world, found)
    host, network = world.host_subject, world.network_subject
    if host is not None:
        _compare_copies(world, host, found)
    if network is not None:
        _compare_holds(world, network, found)
    return found


def accounts(world: World) -> tuple[object, ...]:
    """Everything that is compared here beside the books: where it is equal, so is what is found."""
    truth, host, network = world.truth, world.host_subject, world.network_subject
    return (
        truth.revision,
        truth.copies.revision,
        world.subjects[0].uses(),
        host.copies() if host is not None else (),
        (network.holds(), *truth.transfers.held) if network is not None else (),
    )


def _compare_holds(world: World, subject: NetworkSubject, found: list[Violation]) -> None:
    """Both accounts of the pages that peers may touch, and of those that wait for one."""
    maps, transfers = world.device.program.maps, world.truth.transfers
    ours = {
        (use.kind, band, page, name in transfers.isolated)
        for name, use in transfers.uses.items()
        for band, pages in enumerate(use.pages)
        for page in pages
    }
    ours |= {
        ("receive_hold", band, maps[band][unit], False)
        for ids in transfers.held.values()
        for band, units in enumerate(ids)
        for unit in units
        if maps[band][unit]
    }
    holds = subject.holds()
    theirs = {(hold.kind, hold.band, page, hold.isolated) for hold in holds for page in hold.pages}
    if ours != theirs:
        text = _told(_holds_text(world, ours - theirs), _holds_text(world, theirs - ours))
        sites = (Site("page", band, page) for _, band, page, _ in sorted(ours ^ theirs))
        found.append(broken(world, "ledger", "holds differ", text, first_sites(sites)))


_HELD_AS = {
    "receive_hold": "held for a receive",
    "network_send": "that a send's peer reads",
    "network_receive": "that a receive's peer writes",
}


def _holds_text(world: World, holds: set[tuple[str, int, int, bool]]) -> list[str]:
    """Held pages in words, a part for each kind."""
    kinds = sorted({(kind, is_isolated) for kind, _, _, is_isolated in holds})
    bands = world.layout.bands
    return [
        places_text(
            bands, [(band, page) for kind, band, page, given in holds if (kind, given) == of]
        )
        + f" {_HELD_AS.get(of[0], of[0])}{' that was given up' * of[1]}"
        for of in kinds
    ]


def _told(lacking: Sequence[str], extra: Sequence[str]) -> str:
    """What the allocator's ledger does not say and should, and says and should not."""
    parts = [
        f"{word} {joined(entries)}"
        for word, entries in (("lacks", lacking), ("still has", extra))
        if entries
    ]
    return f"the allocator's ledger {'; it '.join(parts)}"


def _compare_reserved(world: World, found: list[Violation]) -> None:
    """Fixed pages are those that a load was given and no id names yet."""
    for band, reserved in enumerate(world.truth.reserved):
        states = world.books[band].states
        if not reserved and _FIXED not in states:
            continue
        if states.count(_FIXED) == len(reserved) == sum(states[p] == _FIXED for p in reserved):
            continue
        fixed = [page for page, state in enumerate(states) if state == _FIXED]
        said = apart(
            ("pages", {*fixed} - {*reserved}, "are fixed, and of no load in preparation"),
            ("pages", {*reserved} - {*fixed}, "are of a load in preparation, and not fixed"),
        )
        text = f"band {world.layout.bands[band].name!r}: {said}"
        sites = page_sites(band, {*fixed} ^ {*reserved})
        found.append(broken(world, "ledger", "fixed pages differ", text, sites))


def _compare_copies(world: World, subject: HostSubject, found: list[Violation]) -> None:
    """Both accounts of the copies that may still touch the arena, by bytes."""
    ours = sorted((use.kind, use.ranges) for use in world.truth.copies.uses.values())
    theirs = sorted((copy.kind, copy.ranges) for copy in subject.copies())
    if ours != theirs:
        # Two copies of the same pages are two.
        lacking = sorted((Counter(ours) - Counter(theirs)).elements())
        extra = sorted((Counter(theirs) - Counter(ours)).elements())
        text = _told(_copies_text(lacking), _copies_text(extra))
        told, kept = ({r for _, ranges in uses for r in ranges} for uses in (lacking, extra))
        sites = byte_sites(told ^ kept or told)
        found.append(broken(world, "ledger", "copies differ", text, sites))


_COPIES = {"copy_read": "a backup that reads", "copy_write": "a load that writes"}


def _copies_text(copies: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> list[str]:
    return [f"{_COPIES.get(kind, kind)} {bytes_text(ranges)}" for kind, ranges in copies]


def _compare_writes(world: World, found: list[Violation], retired: int) -> None:
    ours = {
        write
        for step in world.truth.steps.values()
        if step.number > retired
        for write in step.writes
    }
    # Beyond its kind a use is what truth's writes are: band, pages, step.
    theirs = {use[1:] for use in world.subjects[0].uses() if use.kind != "vacated"}
    if ours != theirs:
        lacking = sorted((step, band, sorted(pages)) for band, pages, step in ours - theirs)
        extra = sorted((step, band, sorted(pages)) for band, pages, step in theirs - ours)
        text = _told(_writes_text(world, lacking), _writes_text(world, extra))
        sites = (site for _, band, pages in (*lacking, *extra) for site in page_sites(band, pages))
        found.append(broken(world, "ledger", "writes differ", text, first_sites(sites)))


def _writes_text(world: World, writes: Sequence[tuple[int, int, list[int]]]) -> list[str]:
    bands = world.layout.bands
    return [
        f"the write of step {step} to {which_pages(pages)} of {band_text(bands, band)}"
        for step, band, pages in writes
    ]
