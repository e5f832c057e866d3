"""Requests that were retracted with a backup: what is kept of each, and how it comes back.

A retraction is three acts, and so is its way back.  Host slots are taken; the copy is submitted and
the device pages are freed under it; the copy ends.  Pages are taken; rows get names; the copy is
submitted, and the request runs on from where it was.  Truth checks that what comes back is what the
request had, page by page, because truth of copies alone follows whatever slots the allocator names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.check import effects
from harness.problem import BrokenSubject
from harness.requests import Phase, Prefix, Request
from unikv.device.port import RowContent

if TYPE_CHECKING:
    from harness.host import Load
    from harness.world import World

Contents = list[list[bytes | None]]
"""Per band, what the pages of a request hold, in order of position."""


@dataclass(slots=True)
class Parked:
    """A request in host memory; the backup that fills the slots names it.

    Attributes:
        request: whose pages these are; empty once nobody wants them any more.
        slots: per band, host slots of its pages.
        tails: per window band, how many of its last pages have rows.
        length: tokens that it had run.
        is_filled: whether every rank has seen the backup end.
        load: the load that brings it back and is not over, empty when there is none.
        contents: what its pages held when the backup was submitted.
        tokens: of each page, the blocks of the prompt up to its end.
        row: the memory of the row that it gave up; None where rows have none.
    """

    request: str
    slots: tuple[tuple[int, ...], ...]
    tails: list[int]
    length: int
    is_filled: bool = False
    load: str = ""
    contents: Contents = field(default_factory=list)
    tokens: list[tuple[int, ...]] = field(default_factory=list)
    row: RowContent | None = None


def saved_ids(world: World, request: Request) -> list[list[int]]:
    """Per band, the ids of everything that a request has computed, its last page included."""
    count = -(-request.length // world.setup.page_slots)
    pages = request.pages[:count]
    ids: list[list[int]] = [[] for _ in world.band_range]
    ids[world.owner_band] = pages
    for band in world.window_bands:
        ids[band] = pages[request.window_first[band] :]
    slot = world.states.slot_of(world, request)
    if slot:
        # What else it holds is a checkpoint that the cache has not taken; it is given up.
        ids[world.state_band] = [slot]
    return ids


def parked_copy(world: World, request: str) -> str:
    """The backup in whose slots a request is kept.

    Raises:
        BrokenSubject: if there is none, as after an act that a broken promise has cut short.
    """
    for name, part in world.host.parked.items():
        if part.request == request:
            return name
    world.truth.note("assertion", "parked nowhere", f"no copy keeps what {request} has run")
    raise BrokenSubject


def set_aside(world: World, request: Request) -> None:
    """A running request is scheduled no more; it keeps what it holds until it is parked."""
    world.waiting[request.name] = world.running.pop(request.name)
    request.phase = Phase.SAVING


def go_on(world: World, request: Request) -> None:
    """The request is scheduled again."""
    world.running[request.name] = world.waiting.pop(request.name)
    request.phase = Phase.RUNNING


def park(world: World, copy: str) -> None:
    """The backup is submitted: the request gives up its pages under the running copy."""
    parked = world.host.parked[copy]
    request, truth = world.requests[parked.request], world.truth
    ids = saved_ids(world, request)
    parked.contents = contents_of(world, ids)
    parked.tokens = [truth.tokens.get(unit, ()) for unit in ids[world.owner_band]]
    if world.rows.is_kept:
        world.rows.save(world, request)
        parked.row = request.saved
    world.probes["parked"] += 1
    if request.came_from:
        world.probes[f"parked_from_{request.came_from}"] += 1
    if any(request.name in step.requests for step in world.steps):
        world.probes["parked_under_a_running_step"] += 1
    world.probes["parked_with_a_checkpoint"] += len(world.states.held(world, request)) > 1
    world.release(request)
    del world.queued[request.name]
    request.phase = Phase.PARKED


def take_back(world: World, copy: str, prefix: Prefix) -> None:
    """A load has taken pages for a parked request, which holds them from now on."""
    parked = world.host.parked[copy]
    request = world.requests[parked.request]
    world.waiting[request.name] = request
    request.phase = Phase.LOADING
    request.saved = parked.row
    world.rows.take(world, request)
    request.pages = list(prefix.pages)
    world.states.expect(world, request, prefix.slot, parked.length)
    request.window_first = [0] * len(world.setup.bands)
    for band, count in zip(world.window_bands, parked.tails, strict=True):
        request.window_first[band] = len(prefix.pages) - count
    for unit, blocks in zip(prefix.pages, parked.tokens, strict=True):
        world.truth.tokens[unit] = blocks
    world.ask("append_row", request.row, list(request.pages))


def resume(world: World, load: Load) -> None:
    """The load is submitted: the request runs on from where it was, over the running copy."""
    parked = world.host.parked[load.parked]
    request = world.requests[parked.request]
    restored = contents_of(world, saved_ids_of(world, load.prefix))
    if restored != parked.contents:
        world.truth.note(
            "content",
            "request resumed with other bytes",
            f"{request.name} comes back with other bytes in its pages than it was retracted with",
        )
    go_on(world, request)
    request.length = parked.length
    world.states.arrived(world, request)
    # The request does not need the copy any more; the load does, until it is acknowledged.
    parked.request = ""
    request.came_from = "host"
    if request.saved is not None:
        world.probes["resumed_before_its_row_was_restored"] += 1
    request.resumed += 1
    world.probes["resumed" if request.resumed == 1 else "resumed_again"] += 1


def saved_ids_of(world: World, prefix: Prefix) -> list[list[int]]:
    """Per band, the ids that a load fills."""
    ids: list[list[int]] = [[] for _ in world.band_range]
    ids[world.owner_band] = prefix.pages
    for band, tail in zip(world.window_bands, prefix.tails, strict=True):
        ids[band] = tail
    if prefix.slot:
        ids[world.state_band] = [prefix.slot]
    return ids


def cancel_save(world: World, copy: str) -> None:
    """Nothing was copied yet: the host slots go back, and the request is scheduled again."""
    parked = world.host.parked.pop(copy)
    del world.host.backups[copy]
    world.ask("cancel_copy", copy)
    world.truth.copies.slots_given_back(parked.slots)
    go_on(world, world.requests[parked.request])


def cancel_resume(world: World, copy: str) -> None:
    """The load is given up before its submission; the request stays parked."""
    load = world.host.loads.pop(copy)
    parked = world.host.parked[load.parked]
    parked.load = ""
    request = world.requests[parked.request]
    world.states.ended(world, request)
    free_load(world, copy, load)
    world.rows.give_back(world, request)
    del world.waiting[request.name]
    request.reset()
    request.phase = Phase.PARKED


def free_load(world: World, copy: str, load: Load) -> None:
    """Cancel a load; what it took goes back with it."""
    prefix = load.prefix
    world.page_holds.drop(prefix.pages)
    for band, rows in zip(world.window_bands, prefix.tails, strict=True):
        world.row_holds[band].drop(rows)
    world.truth.given_back(world.owner_band, prefix.pages)
    if prefix.slot:
        world.truth.given_back(world.state_band, [prefix.slot])
    world.truth.reservation_over(copy)
    world.free_with("cancel_copy", copy)


def give_up(world: World, request: Request) -> None:
    """A client goes away while its request is saved, parked or loaded."""
    copy = parked_copy(world, request.name)
    world.probes[f"aborted_while_{request.phase.value}"] += 1
    if request.phase is Phase.SAVING:
        cancel_save(world, copy)
        world.release(request)
        return
    parked = world.host.parked[copy]
    if request.phase is Phase.LOADING:
        cancel_resume(world, parked.load)
    elif not parked.is_filled:
        world.probes["aborted_under_its_backup"] += 1
    parked.request = ""
    drop_if_unwanted(world, copy)


def drop_if_unwanted(world: World, copy: str) -> None:
    """Give back the host slots of a request that is gone or runs again, unless a copy uses them."""
    parked = world.host.parked[copy]
    if not parked.request and parked.is_filled and not parked.load:
        submitted = len(world.ports[0].log)
        world.ask("drop_saved", parked.slots)
        effects.after_free(world, "drop_saved", submitted)
        world.truth.copies.slots_given_back(parked.slots)
        del world.host.parked[copy]


def contents_of(world: World, ids: Sequence[Sequence[int]]) -> Contents:
    """What the pages of ids hold, per band."""
    held = []
    for content, units in zip(world.truth.content, ids, strict=True):
        pages = [content[unit] for unit in units]
        held.append([None if page is None else bytes(page) for page in pages])
    return held
