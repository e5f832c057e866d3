"""The first rank's port, through which truth learns what is submitted."""

from __future__ import annotations

from collections.abc import Sequence

from harness.device.launches import ModeledEvent
from harness.device.modeled import ModeledDevice
from harness.device.rank_port import RankPort
from harness.peers import RankNetwork
from harness.truth import Truth
from harness.violation import id_sites
from unikv.device.port import Event, Stream


class LeaderPort(RankPort):
    """The first rank's port, whose submissions truth learns from."""

    def __init__(self, device: ModeledDevice, truth: Truth) -> None:
        super().__init__(device, 0)
        self._truth = truth

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Put later work of `stream` behind `event`."""
        assert isinstance(event, ModeledEvent)
        if stream is Stream.SCHEDULE:
            self._truth.waited(event)
        super().wait_event(stream, event)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy whole pages."""
        self._truth.moved(band, sources)
        if isinstance(self.network, RankNetwork):
            self.network.moves(band, sources)
        super().move_pages(stream, band, sources, targets)

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Write page map entries."""
        self._truth.map_written(band, ids, pages)
        super().write_map(stream, band, ids, pages)

    def copy_to_host(
        self, stream: Stream, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Copy pages to host memory."""
        self._truth.backed_up(band, pages, slots)
        self._note_strays("backup", band, pages, slots)
        super().copy_to_host(stream, band, pages, slots)

    def copy_from_host(
        self,
        stream: Stream,
        band: int,
        layer_group: int,
        slots: Sequence[int],
        pages: Sequence[int],
    ) -> None:
        """Copy pages back from host memory."""
        self._truth.loaded(band, layer_group, slots, pages)
        self._note_strays("load", band, pages, slots)
        super().copy_from_host(stream, band, layer_group, slots, pages)

    def _note_strays(
        self, kind: str, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        truth = self._truth
        ids = [truth.owner[band][page] for page in pages]
        stray = truth.copies.pairs.stray(kind, band, ids, slots)
        if stray is not None:
            unit, slot, other = stray
            whose = f"the page of id {unit}" if unit else "a page that no id names"
            way = (
                f"{whose} to host slot {slot}"
                if kind == "backup"
                else f"host slot {slot} to {whose}"
            )
            name = truth.layout.bands[band].name
            text = f"band {name!r}: a {kind} copies {way}; by its begin {other}"
            truth.note("content", f"{kind} of another page", text, id_sites(band, {*ids} - {0}))
