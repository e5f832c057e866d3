"""The protocol an allocator satisfies to be tested.

One subject serves one rank.  It is built on a `StorageLayout` and a device port, answers the calls
below and shows its bookkeeping in one flat form, so that a check compares memory, not objects.

The contract that the checks hold it to:

- A free is logical: it unbinds on the host and in the device map at once, and waits for nothing.
- Freed pages are *pending* under the newest step that is recorded and not processed, and holes at
  once when there is none.  They return when that step is processed, or earlier once the schedule
  stream has waited the step's event through the port; under any other step no page is a hole.
- A step's writes are in the ledger from `record_step` until the step is processed or the schedule
  stream has waited its event.
- Zeroed bands zero a page each time it is handed out, behind every earlier use of its bytes.
- Page 0 and id 0 stand for the sink: pages lie between `ceil(sink_bytes / page_bytes)` and
  `total_bytes // page_bytes`, and a page map or inverse map holds 0 for "nothing".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from unikv.device.port import Event


class Answer(NamedTuple):
    """What a take handed out."""

    ids: list[int]
    slots: list[int]


class Use(NamedTuple):
    """One entry of a subject's ledger.

    Attributes:
        kind: `forward_write`, `unknown_write` or `vacated`.
        band: index of the band.
        pages: physical pages.
        step: the forward step it waits for.
    """

    kind: str
    band: int
    pages: frozenset[int]
    step: int


class Book(NamedTuple):
    """A subject's account of one band.

    Attributes:
        states: state of every page, by page, `total_bytes // page_bytes` of them: 0 unclaimed,
            1 live, 2 hole, 3 pending, 4 fixed.
        span: claimed pages `[low, high)`; `(0, 0)` when there are none.
        counts: live, hole, pending and fixed pages, as it counts them.
    """

    states: bytes
    span: tuple[int, int]
    counts: tuple[int, int, int, int]


class Subject(Protocol):
    """An allocator under test.

    Shortage is a legal answer, raised as `unikv.errors.Shortage` before anything changed.  Any
    other error of the library, and every built-in error that a mistake raises, is a violation.

    Attributes:
        families: operation families it supports beyond requests and steps, and the generator
            keeps to them: `windows`, `state`, `prefix`, and `layout` if it can move pages.
        shares_bytes: whether any band may use any free byte, which tells the judge of a refusal
            which layouts exist.
    """

    families: frozenset[str]
    shares_bytes: bool

    def fits(self, pages: int, slots: int) -> bool:
        """Whether `take(pages, slots)` would succeed now."""
        ...

    def take(self, pages: int, slots: int) -> Answer:
        """Hand out virtual pages, bound in every token band, and state slots."""
        ...

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages everywhere."""
        ...

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free the rows of one window band."""
        ...

    def free_slots(self, slots: Sequence[int]) -> None:
        """Free state slots."""
        ...

    def take_row(self) -> int:
        """Hand out an empty request row."""
        ...

    def append_row(self, row: int, ids: Sequence[int]) -> None:
        """Write virtual pages behind what the row names."""
        ...

    def free_row(self, row: int) -> None:
        """Return a request row."""
        ...

    def launch_step(self, number: int) -> None:
        """A forward step is launched and not yet recorded."""
        ...

    def record_step(self, number: int, event: Event, writes: Sequence[Sequence[int]]) -> None:
        """The step's end has an event; `writes` are, per band, the ids whose pages it writes."""
        ...

    def record_step_of_unknown_writes(self, number: int, event: Event) -> None:
        """The step's end has an event, and it may write any page."""
        ...

    def process_step(self, number: int) -> None:
        """The host has synchronized a completion that covers the step."""
        ...

    def flush(self, limit: int) -> int:
        """Close holes with at most `limit` moves; how many pages moved."""
        ...

    def relieve(self, pages: int, slots: int) -> bool:
        """Make room for a later take; whether a layout holds it."""
        ...

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        """Physical pages for the kernels of one step; 0 where unbound."""
        ...

    def books(self) -> list[Book]:
        """Its own account of every band's pages."""
        ...

    def page_map(self, band: int) -> list[int]:
        """Page of every id, 0 where unbound.  Entry 0 is the sink."""
        ...

    def inverse_map(self, band: int) -> list[int]:
        """Id of every page, 0 where unbound; entries beyond the last page are not looked at."""
        ...

    def row(self, row: int) -> list[int]:
        """What the host believes a request row names."""
        ...

    def free_rows(self) -> int:
        """Request rows that can be taken now."""
        ...

    def uses(self) -> list[Use]:
        """Every use of a page that is not over."""
        ...

    def pool_pages(self) -> list[int]:
        """Per band, the most pages it can ever hold; asked only where bytes are not shared."""
        ...

    def statistics(self) -> dict[str, int]:
        """Running totals: moves, settles, reliefs, relocations and what else it counts."""
        ...
