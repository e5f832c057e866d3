"""Memory images and what launches do to them.

Every launch has one effect, shared by all ranks.  `apply` is the launch in program order.  `start`
and `end` are the same launch on a rank's device: it reads and writes when it starts *and* when it
ends, so work that overtakes other work, on either side, leaves a trace in the bytes.

Source: writing early and late to make overlap visible is this project's own; the two images follow
the reference-model idea of TigerBeetle's fuzzers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from unikv.device.port import StorageLayout

PageBytes = tuple[int, int, bytes | bytearray]
"""Bytes `[low, high)` of the arena and what they hold or shall hold."""


NEVER_WRITTEN = -1
"""What row memory holds before its first reset."""


class Mismatch(NamedTuple):
    """A read that did not find what program order puts there.

    Attributes:
        space: kind of memory space.
        unit: first byte, entry or row that differs.
        of: index of the band whose map it is, or of the piece of host memory.
    """

    space: str
    unit: int
    of: int = -1


class Image:
    """The contents of every memory space, at one point of program order or on one rank."""

    __slots__ = ("arena", "host", "maps", "row_memory", "rows", "saved_rows", "staging")

    def __init__(self, layout: StorageLayout, staging_count: int) -> None:
        self.arena = bytearray(layout.total_bytes)
        self.maps = [[0] * (band.id_count + 1) for band in layout.bands]
        self.rows = [[0] * layout.row_pages for _ in range(layout.row_count)]
        self.staging: list[list[int]] = [[] for _ in range(staging_count)]
        self.host = [bytearray(part.total_bytes) for part in layout.host]
        self.row_memory = [NEVER_WRITTEN] * layout.row_count
        self.saved_rows: dict[int, int] = {}

    def pieces(self, space: int) -> bytearray:
        """The bytes of a space: of one piece of host memory by its index, of the arena for -1."""
        return self.arena if space < 0 else self.host[space]


class Effect(Protocol):
    """What one launch reads and writes."""

    def apply(self, image: Image) -> None:
        """The whole launch at once, in program order."""
        ...

    def start(self, image: Image) -> Mismatch | None:
        """The launch starts on a rank; the first read that went wrong, if any."""
        ...

    def end(self, image: Image) -> Mismatch | None:
        """The launch ends on a rank; the first read that went wrong, if any."""
        ...

    def run(self, image: Image) -> Mismatch | None:
        """The launch starts and ends on a rank with nothing in between, as `start` and `end`."""
        ...


class WritePages:
    """Writes given bytes: hand-out zeroing."""

    __slots__ = ("_writes",)

    def __init__(self, writes: Sequence[PageBytes]) -> None:
        self._writes = writes

    def apply(self, image: Image) -> None:
        """Write everything."""
        arena = image.arena
        for low, high, data in self._writes:
            arena[low:high] = data

    def start(self, image: Image) -> Mismatch | None:
        """Write everything."""
        self.apply(image)
        return None

    def end(self, image: Image) -> Mismatch | None:
        """Write everything once more."""
        self.apply(image)
        return None

    run = start  # the second write would change nothing


ARENA = -1
"""The arena among the spaces that bytes are copied between; host memory counts from 0."""


class CopyBytes:
    """Copies pieces from one space to another; `before` is what program order holds in each source.

    `source` and `target` are ARENA or the index of a piece of host memory.
    """

    __slots__ = ("_before", "_copies", "_source", "_target")

    def __init__(
        self,
        source: int,
        target: int,
        copies: Sequence[tuple[int, int, int]],
        before: Sequence[bytes],
    ) -> None:
        self._source = source
        self._target = target
        self._copies = copies  # (first byte of the source, of the target, length)
        self._before = before

    def apply(self, image: Image) -> None:
        """Copy what the sources hold."""
        self._copy(image)

    def start(self, image: Image) -> Mismatch | None:
        """Copy what the sources hold, right or wrong."""
        return self._copy(image)

    def end(self, image: Image) -> Mismatch | None:
        """Copy again: a source overwritten meanwhile has spoiled the target."""
        return self._copy(image)

    def run(self, image: Image) -> Mismatch | None:
        """Copy twice: a batch may copy into its own sources."""
        return self._copy(image) or self._copy(image)

    def _copy(self, image: Image) -> Mismatch | None:
        sources, targets = image.pieces(self._source), image.pieces(self._target)
        found = None
        for (source, target, length), before in zip(self._copies, self._before, strict=True):
            data = sources[source : source + length]
            if data != before and found is None:
                space = "arena" if self._source == ARENA else "host"
                found = Mismatch(space, source, self._source)
            targets[target : target + length] = data
        return found


class WriteMap:
    """Writes entries of one band's page map."""

    __slots__ = ("_band", "_entries")

    def __init__(self, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
        self._band = band
        self._entries = tuple(zip(ids, pages, strict=True))

    def apply(self, image: Image) -> None:
        """Write every entry."""
        entries = image.maps[self._band]
        for unit, page in self._entries:
            entries[unit] = page

    def start(self, image: Image) -> Mismatch | None:
        """Write every entry."""
        self.apply(image)
        return None

    def end(self, image: Image) -> Mismatch | None:
        """Write every entry once more."""
        self.apply(image)
        return None

    run = start  # the second write would change nothing


class WriteRow:
    """Writes entries of one request row."""

    __slots__ = ("_entries", "_ids", "_row")

    def __init__(self, row: int, first: int, ids: Sequence[int]) -> None:
        self._row = row
        self._entries = slice(first, first + len(ids))
        self._ids = ids

    def apply(self, image: Image) -> None:
        """Write every entry."""
        image.rows[self._row][self._entries] = self._ids

    def start(self, image: Image) -> Mismatch | None:
        """Write every entry."""
        self.apply(image)
        return None

    def end(self, image: Image) -> Mismatch | None:
        """Write every entry once more."""
        self.apply(image)
        return None

    run = start  # the second write would change nothing


class ReadTables:
    """The metadata phase of a forward: request rows, then page map entries.

    `rows` are `(row, ids)`, the entries from the row's start.  `maps` are `(band, ids, pages)`.
    `staged` are `(buffer, pages)`: the block tables that the host put there for this step, if any.
    """

    __slots__ = ("_maps", "_rows", "_staged")

    def __init__(
        self,
        rows: Sequence[tuple[int, list[int]]],
        maps: Sequence[tuple[int, list[int], list[int]]],
        staged: tuple[int, list[int]] | None = None,
    ) -> None:
        self._rows = rows
        self._maps = maps
        self._staged = staged

    def apply(self, image: Image) -> None:
        """Reads write nothing."""

    def start(self, image: Image) -> Mismatch | None:
        """Read every table entry of the batch."""
        return self._read(image)

    def end(self, image: Image) -> Mismatch | None:
        """Read them again: nobody may have changed one meanwhile."""
        return self._read(image)

    run = start  # the second read would find the same

    def _read(self, image: Image) -> Mismatch | None:
        if self._staged is not None:
            buffer, tables = self._staged
            if image.staging[buffer] != tables:
                return Mismatch("staging", buffer)
        for row, ids in self._rows:
            if image.rows[row][: len(ids)] != ids:
                return Mismatch("rows", row)
        for band, ids, pages in self._maps:
            entries = image.maps[band]
            found = list(map(entries.__getitem__, ids))
            if found != pages:
                at = next(at for at, page in enumerate(pages) if found[at] != page)
                return Mismatch("map", ids[at], band)
        return None


class ReadStaged:
    """A kernel that finds values in a staging buffer, whenever it runs."""

    __slots__ = ("_buffer", "_values")

    def __init__(self, buffer: int, values: list[int]) -> None:
        self._buffer = buffer
        self._values = values

    def apply(self, image: Image) -> None:
        """Reads write nothing."""

    def start(self, image: Image) -> Mismatch | None:
        """Read every value."""
        is_right = image.staging[self._buffer] == self._values
        return None if is_right else Mismatch("staging", self._buffer)

    end = start  # nobody may have changed one meanwhile
    run = start


class Together:
    """Several effects of one launch, in order."""

    __slots__ = ("_effects",)

    def __init__(self, effects: Sequence[Effect]) -> None:
        self._effects = effects

    def apply(self, image: Image) -> None:
        """All of them."""
        for effect in self._effects:
            effect.apply(image)

    def start(self, image: Image) -> Mismatch | None:
        """All of them start."""
        return self._first([effect.start(image) for effect in self._effects])

    def end(self, image: Image) -> Mismatch | None:
        """All of them end."""
        return self._first([effect.end(image) for effect in self._effects])

    def run(self, image: Image) -> Mismatch | None:
        """All of them start and end with nothing in between."""
        return self._first([effect.run(image) for effect in self._effects])

    @staticmethod
    def _first(found: Sequence[Mismatch | None]) -> Mismatch | None:
        return next((mismatch for mismatch in found if mismatch is not None), None)


class RunBody:
    """The body of a forward: reads the pages of its batch, writes its new slots and states.

    `reads` hold before the launch writes; `after` holds once it has, for the pages it writes
    itself; `kept` are the pages it only reads.
    """

    __slots__ = ("_after", "_kept", "_reads", "_writes")

    def __init__(
        self,
        reads: Sequence[PageBytes],
        kept: Sequence[PageBytes],
        writes: Sequence[PageBytes],
        after: Sequence[PageBytes],
    ) -> None:
        self._reads = reads
        self._kept = kept
        self._writes = writes
        self._after = after

    def apply(self, image: Image) -> None:
        """Write the new slots."""
        arena = image.arena
        for low, high, data in self._writes:
            arena[low:high] = data

    def start(self, image: Image) -> Mismatch | None:
        """Read the batch, then write the new slots."""
        found = self._check(image, self._kept) or self._check(image, self._reads)
        self.apply(image)
        return found

    def end(self, image: Image) -> Mismatch | None:
        """Write the new slots again and read everything again."""
        self.apply(image)
        return self._check(image, self._kept) or self._check(image, self._after)

    def run(self, image: Image) -> Mismatch | None:
        """Read what it writes to, write the new slots, and read everything.

        Pages that it only reads are read once: its own writes are of stamps that nobody had before,
        so they cannot put right what was wrong.
        """
        found = self._check(image, self._reads)
        self.apply(image)
        return found or self._check(image, self._kept) or self._check(image, self._after)

    @staticmethod
    def _check(image: Image, expected: Sequence[PageBytes]) -> Mismatch | None:
        arena = image.arena
        for low, high, data in expected:
            if arena[low:high] != data:
                return Mismatch("arena", low)
        return None
