"""Requests and transfers as they stood before an operation: what it had to go by.

What an operation did is half of an answer; the other half is what it should have looked at: how
many tokens a request had run, on which rank the last part of a transfer was still running.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.report.recording import PrefixNote, Recording, RequestNote, TransferNote
from harness.words import counted, joined
from harness.world import World


class ActorTable(NamedTuple):
    """What there is of one kind, in words: a title, the heads of the columns, and the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


REQUEST_HEAD = (
    "request",
    "phase",
    "row",
    "tokens run",
    "tokens with slots for the next step",
    "tokens wanted",
    "ids",
    "window rows kept",
)


def note_requests(world: World) -> tuple[RequestNote, ...]:
    """Every request that is not over."""
    return tuple(
        RequestNote(
            name=request.name,
            phase=request.phase.value,
            row=request.row,
            length=request.length,
            prepared=request.prepared,
            total=request.total,
            ids=tuple(request.pages),
            window_first=tuple(request.window_first),
        )
        for request in world.requests.values()
    )


def note_transfers(world: World) -> tuple[TransferNote, ...]:
    """Every transfer that is not over."""
    state, truth = world.transfers, world.truth.transfers
    notes = []
    for name in state.names():
        send = state.sends.get(name)
        about = send or state.receives[name]
        handed = world.network.handed.get(name) if world.network else None
        ranks = range(world.setup.ranks)
        events = handed.events if handed else ()
        use = truth.uses.get(name)
        notes.append(
            TransferNote(
                name=name,
                is_send=send is not None,
                request=about.request,
                is_prefix=send is not None and send.prefix is not None,
                peer=about.peer,
                queued=send.parts if send else 1,
                handed=len(events),
                is_open=send is not None and not send.is_closed,
                is_unwanted=state.is_unwanted(name),
                is_isolated=name in truth.isolated,
                ended=tuple(
                    sum(world.device.passed(rank, event) for event in events) for rank in ranks
                ),
                failed=frozenset(handed.failed) if handed else frozenset(),
                told=frozenset(handed.told) if handed else frozenset(),
                proved=frozenset(handed.proved) if handed else frozenset(),
                pages=tuple(tuple(sorted(own)) for own in use.pages) if use else (),
            )
        )
    return tuple(notes)


def actor_tables(recording: Recording) -> tuple[ActorTable, ...]:
    """Requests and transfers before the last operation; kinds of which there is none are absent."""
    before = recording.accounts_at(len(recording.frames) - 2)
    requests = tuple(_request_row(recording, note) for note in before.requests)
    transfers = tuple(_transfer_row(recording, note) for note in before.transfers)
    ranks = range(recording.setup.ranks)
    names = [f"on rank {rank}" if len(ranks) > 1 else "how far" for rank in ranks]
    head = ("transfer", "what", "asked for", *names, "pages that its peer may touch")
    tables = (
        ActorTable("The requests", REQUEST_HEAD, requests),
        ActorTable("The transfers", head, transfers),
    )
    return tuple(table for table in tables if table.rows)


def actor_facts(recording: Recording, operation: int) -> Iterator[str]:
    """What an operation changed in the scheduler's own account."""
    before, now = recording.accounts_at(operation - 1), recording.accounts_at(operation)
    phases = {note.name: note.phase for note in before.requests}
    for request in now.requests:
        was = phases.pop(request.name, "")
        if was != request.phase:
            yield (
                f"{request.name}: {was} -> {request.phase}"
                if was
                else (f"{request.name} is {request.phase}")
            )
    yield from (f"{name} is over" for name in phases)
    asked = {note.name: note for note in before.transfers}
    for transfer in now.transfers:
        earlier = asked.pop(transfer.name, None)
        if earlier is None:
            yield f"{transfer.name} begins: {_what(transfer)}"
        elif _asked(earlier) != _asked(transfer):
            yield f"{transfer.name}: {_asked(transfer)}"
    yield from (f"{name} is over" for name in asked)
    kept = {note.blocks: note for note in before.prefixes}
    for prefix in now.prefixes:
        if kept.pop(prefix.blocks, None) is None:
            state = f", and the state on id {prefix.slot}" if prefix.slot else ""
            ids = ", ".join(map(str, prefix.ids))
            yield f"the cache keeps {_blocks(prefix)} on ids {ids}{state}"
    yield from (f"the cache gives up {_blocks(prefix)}" for prefix in kept.values())


def _blocks(prefix: PrefixNote) -> str:
    count = "block" if len(prefix.blocks) == 1 else "blocks"
    return f"{count} {', '.join(map(str, prefix.blocks))} of a prompt"


def _request_row(recording: Recording, note: RequestNote) -> tuple[str, ...]:
    windows = "; ".join(
        f"{part.name} from {_id_at(note.ids, first)}"
        for part, first in zip(recording.setup.bands, note.window_first, strict=False)
        if part.kind == "window" and note.ids
    )
    row = str(note.row) if note.row >= 0 else ""
    numbers = map(str, (note.length, note.prepared, note.total))
    return note.name, note.phase, row, *numbers, ", ".join(map(str, note.ids)), windows


def _transfer_row(recording: Recording, note: TransferNote) -> tuple[str, ...]:
    ranks = [_on_rank(note, rank) for rank in range(recording.setup.ranks)]
    pages = joined(_pages(recording, note)) if any(note.pages) else ""
    return note.name, _what(note), _asked(note), *ranks, pages


def _id_at(ids: Sequence[int], index: int) -> str:
    return f"id {ids[index]}" if index < len(ids) else "none"


def _what(note: TransferNote) -> str:
    if not note.is_send:
        return f"receive from {note.peer}" + (f" for {note.request}" if note.request else "")
    whose = note.request or ("a cached prefix" if note.is_prefix else "")
    return f"send{whose and f' of {whose}'} to {note.peer}"


def _asked(note: TransferNote) -> str:
    asked = []
    if note.is_send:
        asked.append(f"{counted(note.queued, 'part')} queued")
        asked.append("more may come" if note.is_open else "closed")
    if note.is_unwanted:
        asked.append("somebody has asked to stop it")
    if note.is_isolated:
        asked.append("given up, so it waits for proof")
    return ", ".join(asked)


def _on_rank(note: TransferNote, rank: int) -> str:
    if not note.handed:
        return "not with the engine"
    words = [f"{note.ended[rank]} of {counted(note.handed, 'part')} ended"]
    if rank in note.failed:
        words.append("its engine gave up")
    if rank in note.proved:
        words.append("proved quiet")
    elif note.is_isolated:
        words.append("its engine was told to stop" if rank in note.told else "not told to stop yet")
    return ", ".join(words)


def _pages(recording: Recording, note: TransferNote) -> Iterator[str]:
    for part, pages in zip(recording.setup.bands, note.pages, strict=True):
        if pages:
            yield f"{part.name} {', '.join(map(str, pages))}"
