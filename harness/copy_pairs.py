"""Which host slot a copy keeps which page in, as the engine was told when the copy began.

Bytes cannot show two pages that changed places on their way out and back: each is what some page
once held.  So the pairs are compared when a copy is submitted.  Bytes are not known here.
"""

from __future__ import annotations

from collections.abc import Sequence


class CopyPairs:
    """Ids and host slots that belong together.

    Attributes:
        kept: per band and host slot, the id whose page a backup shall keep there.
        wanted: per band and id, the host slot that a load shall bring its page back from.
    """

    def __init__(self, bands: int) -> None:
        self.kept: list[dict[int, int]] = [{} for _ in range(bands)]
        self.wanted: list[dict[int, int]] = [{} for _ in range(bands)]

    def backup_asked(self, ids: Sequence[Sequence[int]], slots: Sequence[Sequence[int]]) -> None:
        """A backup of `ids` was answered with `slots`, per band."""
        for kept, units, own in zip(self.kept, ids, slots, strict=True):
            kept.update(zip(own, units, strict=True))

    def load_asked(self, ids: Sequence[Sequence[int]], slots: Sequence[Sequence[int]]) -> None:
        """A load of `slots` was answered with `ids`, per band."""
        for wanted, units, own in zip(self.wanted, ids, slots, strict=True):
            wanted.update(zip(units, own, strict=True))

    def stray(
        self, kind: str, band: int, ids: Sequence[int], slots: Sequence[int]
    ) -> tuple[int, int, str] | None:
        """The first id whose page goes to, or comes from, a slot that is not its own, and that.

        Returns:
            The id, the slot and whose that slot is, in words.

        Args:
            kind: `backup` or `load`.
            band: index of the band.
            ids, slots: what is copied, pair by pair.
        """
        for unit, slot in zip(ids, slots, strict=True):
            own = self.kept[band].get(slot, unit) if kind == "backup" else unit
            source = self.wanted[band].get(unit, slot) if kind == "load" else slot
            if own != unit:
                return unit, slot, f"that slot is for id {own}"
            if source != slot:
                return unit, slot, f"id {unit} is what slot {source} comes back as"
        return None
