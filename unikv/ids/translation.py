"""The door from virtual to physical for an engine: once per iteration, once per forward.

Both answers cover every band, so that one moment, and one move epoch, holds for all of them.  What
the ids are for, and whether a step is in flight, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import countOf

from unikv.arguments import check_slots
from unikv.device.port import BandLayout
from unikv.errors import ArgumentError, listed
from unikv.ids.iteration_ids import IterationIds, write_slots
from unikv.ids.move_epochs import MoveEpochs
from unikv.ids.runner_ids import Batch, RunnerIds
from unikv.ids.unit_ids import UnitIds


class Translation:
    """Virtual to physical, for the kernels of an engine.

    Order: enqueues nothing and reads no device; translate behind the last call that may move pages.
    """

    __slots__ = ("_layouts", "_maps", "_page_slots", "_state_end", "_token_end")

    def __init__(self, maps: Sequence[UnitIds], layouts: Sequence[BandLayout]) -> None:
        """Translate by `maps`, from the low end to the high end; the last owns the token ids."""
        self._maps = tuple(maps)
        self._layouts = tuple(layouts)
        self._page_slots = layouts[-1].slots_per_page
        self._token_end = layouts[-1].id_count + 1
        states = [part for index, part in enumerate(layouts) if self._holds_state(index)]
        # Without a band of states there is no slot but padding.
        self._state_end = 1 + sum(part.id_count for part in states)

    def move_epochs(self) -> tuple[int, ...]:
        """Per band, how often its pages moved; while one stands still, its ids stay translated."""
        return tuple(units.moves for units in self._maps)

    def writes(self, tokens: Sequence[int], slots: Sequence[int]) -> IterationIds:
        """Physical slots that one iteration writes.

        Args:
            tokens: virtual slot of each new token, `id * slots_per_page + offset`; 0 is padding,
                and the one slot of id 0 that is written.
            slots: state slots that are written; 0 is padding.

        Raises:
            OwnershipError: if a band has no page for a token or slot.
            ArgumentError: for what is no slot of the id space, and for one of id 0 but padding.
        """
        size = self._page_slots
        check_slots("writes", tokens, self._token_end * size)
        check_slots("writes", slots, self._state_end)
        pages = [token // size for token in tokens]
        named = set(pages)
        if 0 in named and pages.count(0) != countOf(tokens, 0):
            wrong = sorted({token for token in tokens if 0 < token < size})
            raise ArgumentError(
                f"writes: {listed(wrong)}, slots of id 0, the sink, where what is written is lost;"
                f" allowed: 0, which is padding, or {size} and above"
            )
        states = set(slots)
        found = []
        for index, units in enumerate(self._maps):
            if self._holds_state(index):
                found.append(write_slots(units, slots, slots, states, 1))
            else:
                found.append(write_slots(units, tokens, pages, named, size))
        return IterationIds(MoveEpochs(self._maps), found)

    def reads(self, rows: Sequence[Sequence[int]], slots: Sequence[Sequence[int]]) -> RunnerIds:
        """Physical page tables of one batch.

        Args:
            rows: per request, the virtual pages that its row names; 0 is padding.
            slots: per request, the state slots that it reads or writes; 0 is padding.

        Raises:
            OwnershipError: if an id names no page of the band that owns it.
            ArgumentError: for what is no id of its space.
        """
        tokens, states = Batch(rows), Batch(slots)
        check_slots("reads", tokens.ids, self._token_end)
        check_slots("reads", states.ids, self._state_end)
        found = []
        for index, (units, layout) in enumerate(zip(self._maps, self._layouts, strict=True)):
            batch = states if self._holds_state(index) else tokens
            pages = batch.owned_pages(units) if layout.mints else batch.pages(units)
            found.append(batch.tables(pages))
        return RunnerIds(MoveEpochs(self._maps), found)

    def _holds_state(self, index: int) -> bool:
        return self._layouts[index].mints and index != len(self._layouts) - 1
