"""Pages that somebody outside our streams holds still: receive holds and network transfers.

A transfer engine runs on no stream of ours, so no event orders us behind it.  Its uses end when its
protocol releases them on every rank in the same round; until then the pages are neither moved
nor reused, and a page freed meanwhile is *stuck*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from unikv.alloc.use import Use
from unikv.errors import TransferError, listed

TRANSFERS = frozenset({Use.NETWORK_SEND, Use.NETWORK_RECEIVE})
HOLDS = TRANSFERS | {Use.RECEIVE_HOLD}

KINDS = {
    Use.RECEIVE_HOLD: "a receive hold",
    Use.NETWORK_SEND: "a network send",
    Use.NETWORK_RECEIVE: "a network receive",
}
"""What errors call a hold."""


class TransferWaiter(Protocol):
    """How the host waits for transfer engines."""

    def wait(self, names: Sequence[str]) -> None:
        """Block the host until every named transfer is over on every rank.

        Every rank returns in the same round.

        Raises:
            TransferError: on every rank in the same round, past the deadline; it names the
                transfers still in flight.
        """
        ...


class NoTransfers:
    """The waiter of a storage that talks to no peer."""

    def wait(self, names: Sequence[str]) -> None:
        """Nothing to wait for: nobody can have begun a transfer."""
        raise TransferError(
            f"no waiter is installed, and transfers {listed(names)} are in flight; build the"
            " storage with a `TransferWaiter`"
        )


@dataclass(frozen=True, slots=True)
class Hold:
    """Pages of one band that stay where they are.

    Attributes:
        name: the transfer or the receive hold.
        use: `RECEIVE_HOLD`, `NETWORK_SEND` or `NETWORK_RECEIVE`.
        band: index of the band.
        pages: physical pages.
    """

    name: str
    use: Use
    band: int
    pages: frozenset[int]


class HeldPages:
    """Every hold that is not over.

    Law: stuck pages are pages of transfers, pending in their band, and owned by nobody.  A name
    that ended early holds nothing until its release has come.  Isolated names hold pages.  What is
    held under one name is of one kind, because one release ends all of it.

    Attributes:
        isolated: transfers that were given up on every rank: no wait ends them, only a proof that
            may never come, so no layout may count on their pages.
    """

    __slots__ = ("_ended_early", "_holds", "_stuck", "isolated")

    def __init__(self) -> None:
        self._holds: list[Hold] = []
        self._stuck: dict[int, set[int]] = {}
        self._ended_early: set[str] = set()
        self.isolated: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._holds)

    def holds(self) -> tuple[Hold, ...]:
        """Every hold, oldest first."""
        return tuple(self._holds)

    def ended_early(self) -> frozenset[str]:
        """Transfers that a relief has ended and whose release has not come."""
        return frozenset(self._ended_early)

    def check_begin(self, name: str, use: Use) -> None:
        """Refuse a name whose release is to come for something else; one use may grow.

        Raises:
            TransferError: if something of another kind is held under this name, or as
                `check_ended`.
        """
        self.check_ended(name)
        for hold in self._holds:
            if hold.name == name and hold.use is not use:
                raise TransferError(
                    f"{name!r} begins as {KINDS[use]}, but is the name of {KINDS[hold.use]} that is"
                    " not over, and one release would end both; release it first, or take a name"
                    " that was never used"
                )

    def check_ended(self, name: str) -> None:
        """Refuse a name that the release of an older transfer is still to come for.

        Raises:
            TransferError: if a relief has ended a transfer of this name that was not released yet:
                its release would end the new one while a peer still touches the pages.
        """
        if name in self._ended_early:
            raise TransferError(
                f"{name!r} begins again, but a relief has ended a transfer of that name and its"
                " release has not come; release it first, or take a name that was never used"
            )

    def add(self, name: str, use: Use, band: int, pages: Collection[int]) -> None:
        """Record that `name` holds `pages`."""
        assert use in HOLDS
        if pages:
            self._holds.append(Hold(name, use, band, frozenset(pages)))

    def pages(self, band: int, uses: Iterable[Use]) -> set[int]:
        """Pages of `band` that holds of these kinds name."""
        wanted = frozenset(uses)
        return {
            page
            for hold in self._holds
            if hold.band == band and hold.use in wanted
            for page in hold.pages
        }

    def kept(self, band: int, uses: Iterable[Use]) -> set[int]:
        """Pages of `band` that stay where these kinds of holds are left alone.

        Those of isolated transfers always stay.
        """
        pages = self.pages(band, uses)
        for hold in self._holds if self.isolated else ():
            if hold.band == band and hold.name in self.isolated:
                pages |= hold.pages
        return pages

    def transfers(self, bands: Collection[int]) -> list[str]:
        """Transfers that touch one of `bands` and can be waited for, oldest first."""
        names = [
            hold.name
            for hold in self._holds
            if hold.band in bands
            and hold.use in TRANSFERS
            and hold.pages
            and hold.name not in self.isolated
        ]
        return list(dict.fromkeys(names))

    def isolate(self, name: str) -> None:
        """The transfer `name` was given up on every rank: nobody waits for it until it ends.

        A name that ended early has no page that somebody could wait for.

        Raises:
            TransferError: if no transfer holds pages under that name.
        """
        if name in self._ended_early:
            return
        if not any(hold.name == name and hold.use in TRANSFERS for hold in self._holds):
            known = sorted({hold.name for hold in self._holds if hold.use in TRANSFERS})
            raise TransferError(
                f"{name!r} is given up, but is no transfer that holds pages; those are"
                f" {listed(known)}: drop what no engine has seen, and isolate the rest"
            )
        self.isolated.add(name)

    def stick(self, band: int, pages: Collection[int]) -> None:
        """Pages freed under a transfer."""
        if pages:
            self._stuck.setdefault(band, set()).update(pages)

    def stuck(self, band: int) -> frozenset[int]:
        """Pages of `band` freed under a transfer that is not over."""
        return frozenset(self._stuck.get(band, ()))

    def moved(self, band: int, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Follow receive holds whose pages a relief moved; pages of transfers never move."""
        if not self._holds:
            return
        place = dict(zip(sources, targets, strict=True))
        for index, hold in enumerate(self._holds):
            if hold.band == band and not hold.pages.isdisjoint(place):
                assert hold.use is Use.RECEIVE_HOLD, "a page under a transfer was moved"
                pages = frozenset(place.get(page, page) for page in hold.pages)
                self._holds[index] = Hold(hold.name, hold.use, band, pages)

    def leave(self, band: int, pages: Sequence[int]) -> None:
        """Let freed pages leave the receive holds, as the next owner's are not to be published.

        A hold keeps its name when its last page leaves.
        """
        for index, hold in enumerate(self._holds):
            if hold.band == band and hold.use is Use.RECEIVE_HOLD:
                self._holds[index] = Hold(hold.name, hold.use, band, hold.pages.difference(pages))

    def end(self, name: str) -> dict[int, list[int]]:
        """End every hold of `name`; per band, the stuck pages that nothing holds any more.

        A name that ended early ends once more, with nothing to give back.

        Raises:
            TransferError: if nothing is held under that name.
        """
        if name in self._ended_early:
            self._ended_early.remove(name)
            return {}
        ended = [hold for hold in self._holds if hold.name == name]
        if not ended:
            known = sorted({hold.name for hold in self._holds})
            raise TransferError(
                f"{name!r} holds no pages; held are {listed(known)}:"
                " release each transfer or hold once"
            )
        self._holds = [hold for hold in self._holds if hold.name != name]
        self.isolated.discard(name)
        freed: dict[int, list[int]] = {}
        for band in {hold.band for hold in ended}:
            loose = self.stuck(band) - self.pages(band, TRANSFERS)
            if loose:
                self._stuck[band] -= loose
                freed[band] = sorted(loose)
        return freed

    def end_early(self, name: str) -> dict[int, list[int]]:
        """As `end`, for a transfer that a relief waited for; the next `end` of it is harmless.

        The protocol releases what it began on every rank, whether or not a relief was faster.
        """
        freed = self.end(name)
        self._ended_early.add(name)
        return freed

    def publish(self, hold: str, transfer: str) -> list[Hold]:
        """Turn a receive hold into a receive, with no gap between the two; the new holds.

        Raises:
            TransferError: if `hold` is no receive hold, `transfer` is another name under which
                something is held, or as `check_ended` for it; nothing has changed then.
        """
        self.check_ended(transfer)
        for held in self._holds if transfer != hold else ():
            if held.name == transfer:
                raise TransferError(
                    f"{hold!r} is published as {transfer!r}, the name of {KINDS[held.use]} that is"
                    " not over, and one release would end both; release it first, or take a name"
                    " that was never used"
                )
        new = []
        for index, held in enumerate(self._holds):
            if held.name == hold and held.use is Use.RECEIVE_HOLD:
                self._holds[index] = Hold(transfer, Use.NETWORK_RECEIVE, held.band, held.pages)
                new.append(self._holds[index])
        if not new:
            known = sorted({held.name for held in self._holds if held.use is Use.RECEIVE_HOLD})
            raise TransferError(
                f"{hold!r} is no receive hold; held are {listed(known)}:"
                " take the rows and hold them first"
            )
        return new
