"""Virtual to physical and back, on the host, where it is the truth.

Device page maps are replicas written in stream order; nothing here reads them.  Id 0 and page 0
stand for the sink: an unbound id reads as 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from unikv.errors import LISTED, OwnershipError, listed


class Operation(NamedTuple):
    """The allocator operation an id was last freed by, for the text of a double free.

    Attributes:
        serial: position among the allocator's operations, from 1; 0 where nothing freed the id.
        name: the call: `free`, `retire`, `free_slots`.
    """

    serial: int
    name: str

    def __str__(self) -> str:
        return f"freed by operation {self.serial}, {self.name}" if self.serial else "never bound"


NEVER = Operation(0, "")


class UnitIds:
    """One band's page map.

    Law: `forward[id] == page` exactly if `inverse[page] == id`, for every bound id and page.

    Attributes:
        forward: page of each id, 0 where unbound.  As long as the *minting* band's id space.
        inverse: id of each page, 0 where unbound.  As long as this band's own page space.
        moves: how often bound ids were given other pages; while it stands still, every bound id
            stays where it is.
    """

    __slots__ = ("_freed_by", "forward", "inverse", "moves", "name")

    def __init__(self, name: str, id_count: int, page_count: int) -> None:
        self.name = name
        self.forward = [0] * (id_count + 1)
        self.inverse = [0] * (page_count + 1)
        self.moves = 0
        self._freed_by = [NEVER] * (id_count + 1)

    def bind(self, ids: Sequence[int], pages: Sequence[int]) -> None:
        """Let each id name the page at the same place.

        Raises:
            OwnershipError: if an id is out of range, or an id or a page is bound already or listed
                twice; nothing has changed then.
        """
        assert len(ids) == len(pages)
        forward, inverse, end = self.forward, self.inverse, len(self.forward)
        for done, unit in enumerate(ids):
            page = pages[done]
            if not 0 < unit < end or forward[unit] or inverse[page]:
                self._undo_bind(ids[:done], pages[:done])
                self._refuse_bind(ids, pages)
            forward[unit] = page
            inverse[page] = unit

    def unbind(self, ids: Sequence[int], operation: Operation) -> list[int]:
        """Forget the ids and return their pages, in the same order.

        Raises:
            OwnershipError: if an id is unbound, listed twice or out of range; it names the
                operation that freed it before, and nothing has changed.
        """
        forward, inverse, end = self.forward, self.inverse, len(self.forward)
        pages: list[int] = []
        for unit in ids:
            page = forward[unit] if 0 < unit < end else 0
            if not page:
                self._undo_unbind(ids[: len(pages)], pages)
                self._refuse_unbind(ids, operation)
            forward[unit] = 0
            inverse[page] = 0
            pages.append(page)
        freed_by = self._freed_by
        for unit in ids:
            freed_by[unit] = operation
        return pages

    def rebind(self, sources: Sequence[int], targets: Sequence[int]) -> list[int]:
        """Let the ids of `sources` name `targets` instead; returns those ids, in order."""
        self.moves += 1
        forward, inverse = self.forward, self.inverse
        ids = [inverse[page] for page in sources]
        for unit, source, target in zip(ids, sources, targets, strict=True):
            assert unit
            assert not inverse[target]
            inverse[source] = 0
            inverse[target] = unit
            forward[unit] = target
        return ids

    def pages_of(self, ids: Sequence[int]) -> list[int]:
        """Pages that the ids name.

        Raises:
            OwnershipError: if an id is out of range or unbound.
        """
        forward, end = self.forward, len(self.forward)
        pages = [forward[unit] if 0 < unit < end else 0 for unit in ids]
        if 0 in pages:
            self._check_range(ids)
            unbound = [unit for unit in ids if not forward[unit]]
            history = "; ".join(f"id {unit} {self._freed_by[unit]}" for unit in unbound[:LISTED])
            raise OwnershipError(
                f"band {self.name!r}: ids {listed(unbound)} name no page ({history});"
                " only a bound id may be freed or used"
            )
        return pages

    def freed_by(self, ids: Sequence[int]) -> tuple[Operation, ...]:
        """The operation that each id was last freed by.

        While the answer for a bound id stays the same, so does whoever holds it: an id that was
        freed may be bound again at once, and then looks as if nothing had happened.
        """
        return tuple(self._freed_by[unit] for unit in ids)

    def _check_range(self, ids: Sequence[int]) -> None:
        wrong = [unit for unit in ids if not 0 < unit < len(self.forward)]
        if wrong:
            raise OwnershipError(
                f"band {self.name!r}: ids {listed(wrong)} are outside 1..{len(self.forward) - 1};"
                " use ids as a take answered them"
            )

    def _undo_bind(self, ids: Sequence[int], pages: Sequence[int]) -> None:
        for unit, page in zip(ids, pages, strict=True):
            self.forward[unit] = 0
            self.inverse[page] = 0

    def _refuse_bind(self, ids: Sequence[int], pages: Sequence[int]) -> NoReturn:
        self._check_range(ids)
        if len(set(ids)) < len(ids) or len(set(pages)) < len(pages):
            raise OwnershipError(
                f"band {self.name!r}: bind of ids {listed(ids)} to pages {listed(pages)}; each may"
                " be listed once"
            )
        unit, page = next(
            (unit, page)
            for unit, page in zip(ids, pages, strict=True)
            if self.forward[unit] or self.inverse[page]
        )
        raise OwnershipError(
            f"band {self.name!r}: bind of id {unit} to page {page}, but id {unit} names"
            f" page {self.forward[unit]} and page {page} belongs to id {self.inverse[page]}"
            " (0 is none); free the old binding first"
        )

    def _undo_unbind(self, ids: Sequence[int], pages: Sequence[int]) -> None:
        for unit, page in zip(ids, pages, strict=True):
            self.forward[unit] = page
            self.inverse[page] = unit

    def _refuse_unbind(self, ids: Sequence[int], operation: Operation) -> NoReturn:
        self.pages_of(ids)
        # Every id names a page, so the one that did not was listed before.
        twice = sorted(unit for unit, count in Counter(ids).items() if count > 1)
        raise OwnershipError(
            f"band {self.name!r}: {operation.name} lists ids {listed(twice)} more than once;"
            " list each once"
        )


class MintedIds:
    """The ids a minting band has left, last freed first.

    Law: an id is in the free list or with a caller, never both.
    """

    __slots__ = ("_free",)

    def __init__(self, id_count: int) -> None:
        self._free = list(range(id_count, 0, -1))

    @property
    def free_count(self) -> int:
        """Ids that can be minted now."""
        return len(self._free)

    def free_ids(self) -> tuple[int, ...]:
        """The ids that can be minted, the next one last."""
        return tuple(self._free)

    def mint(self, count: int) -> list[int]:
        """Hand out `count` ids; the caller has checked that so many are free."""
        assert 0 <= count <= len(self._free)
        split = len(self._free) - count
        minted = self._free[split:]
        del self._free[split:]
        minted.reverse()
        return minted

    def give_back(self, ids: Sequence[int]) -> None:
        """Return freed ids; they may be minted again at once."""
        self._free.extend(ids)
