"""Pages of failed transfers, kept until the engine has proved that nobody touches them any more.

The ledger keeps the pages where they are; what is here is why, since when, and which proof is
awaited.  Time is no proof, so nothing here knows any: a late write of a peer finds a page that is
still its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, assert_never

from unikv.alloc.band import FIXED, LIVE, PENDING, Band
from unikv.alloc.band_audit import pages_in
from unikv.arguments import check_number
from unikv.disagg.agreement import Evidence
from unikv.disagg.engine import EpochProof, FenceProof, NoProof, Pages, Proof, TransferEngine
from unikv.disagg.engine_calls import Refused, tell
from unikv.disagg.life import Direction, Outcome
from unikv.errors import TransferError


class QuarantineLimits(NamedTuple):
    """How much of one peer may wait for proof before new transfers to it are refused.

    Attributes:
        transfers: transfers of one peer, 1 or more.
        pages: pages of one peer, of all bands together, 1 or more.
    """

    transfers: int
    pages: int


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One transfer that was given up and is not proved quiet.

    Attributes:
        name: the transfer.
        peer: who may still touch the pages, through this rank's engine.
        direction: whether they are read or written.
        cause: `FAILED` or `ABORTED`: how the transfer ends once there is proof.
        pages: what the engine was told, per band, ascending.
        page_count: how many ids named those pages, over all parts.
        since_round: the round in which it was given up.
        awaited: what would prove that it is quiet; `NoProof` says why this rank's engine could not
            be told to stop, and it is told again in every round.
        refusal: why this rank's engine would not begin a part; empty if it did.
    """

    name: str
    peer: str
    direction: Direction
    cause: Outcome
    pages: Pages
    page_count: int
    since_round: int
    awaited: Proof
    refusal: str


class Quarantine:
    """Every transfer of one rank that waits for a proof.

    Law: it is entered and left by what all ranks agreed on, so its transfers, peers and counts are
    equal on every rank; what each awaits, or was refused, is its own.
    """

    __slots__ = ("_engine", "_kept", "limits")

    def __init__(self, engine: TransferEngine, limits: QuarantineLimits) -> None:
        for limit in limits:
            check_number("quarantine", "a limit", limit)
        self._engine = engine
        self._kept: dict[str, Quarantined] = {}
        self.limits = limits
        if min(limits) < 1:
            raise TransferError(
                f"quarantine limits {tuple(limits)}; allowed: 1 or more transfers and pages of one"
                " peer, or every transfer would be refused"
            )

    def report(self) -> tuple[Quarantined, ...]:
        """What waits for proof, oldest first."""
        return tuple(self._kept.values())

    def check_open(self, peer: str) -> None:
        """Refuse a new transfer to a peer that has too much here.

        Transfers under way when the limit is reached may still fail and are kept all the same.

        Raises:
            TransferError: if the peer's transfers or pages have reached a limit.
        """
        kept = [entry for entry in self._kept.values() if entry.peer == peer]
        pages = sum(entry.page_count for entry in kept)
        if len(kept) >= self.limits.transfers or pages >= self.limits.pages:
            oldest = kept[0]
            raise TransferError(
                f"new transfer to peer {peer!r}, of which {len(kept)} transfers with {pages} pages"
                f" are in quarantine; allowed: fewer than {self.limits.transfers} and fewer than"
                f" {self.limits.pages} pages: use another peer until {oldest.name!r} is proved"
                f" quiet by {oldest.awaited}"
            )

    def isolate(self, entry: Quarantined) -> None:
        """Stop a transfer and keep its pages; `awaited` of `entry` is filled in."""
        self._kept[entry.name] = replace(entry, awaited=self._stop(entry.name))

    def evidence(self, name: str) -> Evidence:
        """What this rank's engine can prove now of a transfer that is kept here."""
        entry = self._kept[name]
        if isinstance(entry.awaited, NoProof):
            entry = replace(entry, awaited=self._stop(name))
            self._kept[name] = entry
        try:
            is_proved = self._is_proved(entry.awaited)
        except TransferError:
            # An engine that cannot answer has proved nothing; it is asked again.
            return Evidence.MISSING
        return Evidence.GIVEN if is_proved else Evidence.MISSING

    def lift(self, name: str) -> Quarantined:
        """Every rank has its proof: the transfer leaves."""
        return self._kept.pop(name)

    def unaccounted_pages(self, bands: Sequence[Band]) -> Pages:
        """Claimed pages that are in no quarantine, per band: what a drained chain must not have."""
        found = []
        for band in bands:
            kept = {page for entry in self._kept.values() for page in entry.pages[band.index]}
            claimed = [page for state in (LIVE, PENDING, FIXED) for page in pages_in(band, state)]
            found.append(tuple(sorted(set(claimed) - kept)))
        return tuple(found)

    def _stop(self, name: str) -> Proof:
        answer = tell(lambda: self._engine.abort(name))
        return NoProof(answer.reason) if isinstance(answer, Refused) else answer

    def _is_proved(self, proof: Proof) -> bool:
        match proof:
            case FenceProof(fence):
                return self._engine.fence_passed(fence)
            case EpochProof(epoch):
                return self._engine.quiet_epoch() >= epoch
            case NoProof():
                return False
            case _:
                assert_never(proof)
