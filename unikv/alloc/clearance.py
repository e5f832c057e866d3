"""The one table that says what must be true before bytes in use may be touched.

A row is the next toucher, a column is what may still be in flight on the bytes.  No other module
compares a use with an action: the allocator and the engine loop look their rule up here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Toucher(Enum):
    """Who touches the bytes next."""

    HAND_OUT = "hand-out"  # schedule stream: zero, or target of a move
    MOVE_SOURCE = "move source"  # schedule stream: read by a move
    TABLE_WRITE = "table write"  # schedule stream: page map, request row
    GROWTH = "growth"  # schedule stream: a band grows over bytes that another left
    FORWARD = "forward"  # forward stream: pages of its batch, table reads
    LOAD_COPY = "load copy"  # load stream: writes pages from host memory
    BACKUP_COPY = "backup copy"  # backup stream: reads pages into host memory
    ROW_RESTORE = "row restore"  # schedule stream: row memory, written whole or saved


class InFlight(Enum):
    """What may still be running on the bytes."""

    SCHEDULE = "schedule"  # zeroing, moves, table writes
    FORWARD = "forward"  # metadata and body of an unretired step
    UNKNOWN_FORWARD = "unknown forward"  # the same of a step that may write any page
    BACKUP = "backup"  # a copy to the host reads
    LOAD = "load"  # a copy from the host writes
    NETWORK = "network"  # a transfer engine reads or a peer writes


class Clearance(Enum):
    """What makes the touch safe."""

    SAME_STREAM = "same stream"  # ordered by construction
    NEVER_OFFERED = "never offered"  # the page stays pending, so nobody can choose it
    WAIT_WRITER = "wait writer"  # S waits the newest unretired forward that writes it
    NONE = "none"  # two reads, or bytes that the other never touches
    WAIT_COPY = "wait copy"  # S waits the copy's event, after the choice, by bytes
    AT_HAND_OUT = "at hand-out"  # whoever handed the page out has waited, so nothing is left
    WAIT_HOST = "wait host"  # the host waits the transfer, in a relief that nothing else can serve
    NO_MOVE = "no move"  # nothing of the band moves until the step retires
    WAIT_READ_END = "wait read end"  # S waits the shared-read end, or all of F if none is declared
    WAIT_SCHEDULE = "wait schedule"  # the toucher's stream waits S when the work is submitted
    WAIT_FORWARD = "wait forward"  # the toucher's stream waits F when the work is submitted
    WAIT_LOAD = "wait load"  # the toucher's stream waits that load; F per layer group if wanted
    AFTER_RELEASE = "after release"  # received pages are nobody's to use before their release


ClearanceTable = Mapping[tuple[Toucher, InFlight], Clearance]

CLEARANCE: ClearanceTable = {
    # Everything S enqueues runs in order on S.
    (Toucher.HAND_OUT, InFlight.SCHEDULE): Clearance.SAME_STREAM,
    (Toucher.MOVE_SOURCE, InFlight.SCHEDULE): Clearance.SAME_STREAM,
    (Toucher.TABLE_WRITE, InFlight.SCHEDULE): Clearance.SAME_STREAM,
    (Toucher.GROWTH, InFlight.SCHEDULE): Clearance.SAME_STREAM,
    # A freed or vacated page may still be read and written by every forward in flight.  It stays
    # pending inside the span, so it is neither a hole to take nor a byte to grow over.
    (Toucher.HAND_OUT, InFlight.FORWARD): Clearance.NEVER_OFFERED,
    (Toucher.GROWTH, InFlight.FORWARD): Clearance.NEVER_OFFERED,
    # A copy that overtakes the writer carries the bytes from before the write.  Forwards that only
    # read the page do not delay the copy, which reads too.
    (Toucher.MOVE_SOURCE, InFlight.FORWARD): Clearance.WAIT_WRITER,
    # The metadata phase of the running forward reads rows and maps; the body never does.
    (Toucher.TABLE_WRITE, InFlight.FORWARD): Clearance.WAIT_READ_END,
    # A verify or draft step decides on the device what it writes.  For pages in its hands that
    # changes nothing, but no copy can know which writer it has to follow.
    (Toucher.HAND_OUT, InFlight.UNKNOWN_FORWARD): Clearance.NEVER_OFFERED,
    (Toucher.GROWTH, InFlight.UNKNOWN_FORWARD): Clearance.NEVER_OFFERED,
    (Toucher.MOVE_SOURCE, InFlight.UNKNOWN_FORWARD): Clearance.NO_MOVE,
    (Toucher.TABLE_WRITE, InFlight.UNKNOWN_FORWARD): Clearance.WAIT_READ_END,
    (Toucher.FORWARD, InFlight.UNKNOWN_FORWARD): Clearance.SAME_STREAM,
    # Copies follow no step.  A page freed under one is a hole, and its next writer waits.  Bytes
    # that a band grew over, and pages that a forward finds unzeroed, were handed out before.
    (Toucher.HAND_OUT, InFlight.BACKUP): Clearance.WAIT_COPY,
    (Toucher.HAND_OUT, InFlight.LOAD): Clearance.WAIT_COPY,
    (Toucher.GROWTH, InFlight.BACKUP): Clearance.AT_HAND_OUT,
    (Toucher.GROWTH, InFlight.LOAD): Clearance.AT_HAND_OUT,
    (Toucher.MOVE_SOURCE, InFlight.BACKUP): Clearance.NONE,
    (Toucher.MOVE_SOURCE, InFlight.LOAD): Clearance.WAIT_COPY,
    (Toucher.FORWARD, InFlight.BACKUP): Clearance.AT_HAND_OUT,
    # A forward may be launched over a load in flight, which it waits where it reads the pages.
    (Toucher.FORWARD, InFlight.LOAD): Clearance.WAIT_LOAD,
    # Copies and transfers carry physical ids and look no table up.
    (Toucher.TABLE_WRITE, InFlight.BACKUP): Clearance.NONE,
    (Toucher.TABLE_WRITE, InFlight.LOAD): Clearance.NONE,
    (Toucher.TABLE_WRITE, InFlight.NETWORK): Clearance.NONE,
    # A transfer engine is on no stream: its pages are pinned, and stuck once they are freed.
    (Toucher.HAND_OUT, InFlight.NETWORK): Clearance.NEVER_OFFERED,
    (Toucher.GROWTH, InFlight.NETWORK): Clearance.NEVER_OFFERED,
    (Toucher.FORWARD, InFlight.NETWORK): Clearance.AT_HAND_OUT,
    (Toucher.MOVE_SOURCE, InFlight.NETWORK): Clearance.WAIT_HOST,
    # Zeroed pages, new rows and map entries must be in place before the metadata phase.
    (Toucher.FORWARD, InFlight.SCHEDULE): Clearance.WAIT_SCHEDULE,
    (Toucher.FORWARD, InFlight.FORWARD): Clearance.SAME_STREAM,
    # A load writes pages that were handed out for it, so whatever used them before is over for S,
    # and with it for whoever waits S; so are moves of the pages and their map entries.
    (Toucher.LOAD_COPY, InFlight.SCHEDULE): Clearance.WAIT_SCHEDULE,
    (Toucher.LOAD_COPY, InFlight.FORWARD): Clearance.AT_HAND_OUT,
    (Toucher.LOAD_COPY, InFlight.UNKNOWN_FORWARD): Clearance.AT_HAND_OUT,
    (Toucher.LOAD_COPY, InFlight.BACKUP): Clearance.AT_HAND_OUT,
    (Toucher.LOAD_COPY, InFlight.LOAD): Clearance.SAME_STREAM,
    (Toucher.LOAD_COPY, InFlight.NETWORK): Clearance.AT_HAND_OUT,
    # A backup reads what forwards, moves and loads have put into live pages.
    (Toucher.BACKUP_COPY, InFlight.SCHEDULE): Clearance.WAIT_SCHEDULE,
    (Toucher.BACKUP_COPY, InFlight.FORWARD): Clearance.WAIT_FORWARD,
    (Toucher.BACKUP_COPY, InFlight.UNKNOWN_FORWARD): Clearance.WAIT_FORWARD,
    (Toucher.BACKUP_COPY, InFlight.BACKUP): Clearance.NONE,
    (Toucher.BACKUP_COPY, InFlight.LOAD): Clearance.WAIT_LOAD,
    (Toucher.BACKUP_COPY, InFlight.NETWORK): Clearance.AFTER_RELEASE,
    # Row memory is a forward's to read and write until its last kernel, so no shared-read end
    # helps: the row's previous holder may still run, and so may a reset that a launch enqueued.
    (Toucher.ROW_RESTORE, InFlight.SCHEDULE): Clearance.SAME_STREAM,
    (Toucher.ROW_RESTORE, InFlight.FORWARD): Clearance.WAIT_FORWARD,
    (Toucher.ROW_RESTORE, InFlight.UNKNOWN_FORWARD): Clearance.WAIT_FORWARD,
    # Copies and transfers touch pages and no row.
    (Toucher.ROW_RESTORE, InFlight.BACKUP): Clearance.NONE,
    (Toucher.ROW_RESTORE, InFlight.LOAD): Clearance.NONE,
    (Toucher.ROW_RESTORE, InFlight.NETWORK): Clearance.NONE,
}
