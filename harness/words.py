"""Figures in words: pages, bytes and counts as every check says them, each in one way.

What was broken is not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from unikv.device.port import BandLayout


def counted(count: int, unit: str) -> str:
    """A number of things: `1 page`, `3 pages`."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def joined(parts: Iterable[str]) -> str:
    """A list in a sentence: `a, b and c`; `none` where it is empty."""
    *most, last = [*parts] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def band_text(bands: Sequence[BandLayout], band: int) -> str:
    """A band by the index that somebody gave, which may be of none."""
    return f"band {bands[band].name!r}" if 0 <= band < len(bands) else f"band {band} (none)"


def apart(*parts: tuple[str, Collection[int], str]) -> str:
    """What two accounts do not have in common, leaving out what they do.

    Args:
        parts: each a noun, what is found in one account alone, and what is wrong with that.
    """
    return "; ".join(f"{noun} {sorted(found)} {what}" for noun, found, what in parts if found)


def demand_text(bands: Sequence[BandLayout], counts: Sequence[int]) -> str:
    """Pages asked of every band: `3 pages of 'window128' and 1 of 'full'`."""
    asked = [f"of {part.name!r}" for part, count in zip(bands, counts, strict=True) if count]
    numbers = [count for count in counts if count]
    if not numbers:
        return "no pages"
    first = f"{counted(numbers[0], 'page')} {asked[0]}"
    return joined([first, *(f"{n} {of}" for n, of in zip(numbers[1:], asked[1:], strict=True))])


def places_text(bands: Sequence[BandLayout], pages: Iterable[tuple[int, int]]) -> str:
    """Pages of several bands, each given as (band, page): `pages [1, 2] of band 'full'`."""
    per_band: dict[int, list[int]] = {}
    for band, page in sorted(pages):
        per_band.setdefault(band, []).append(page)
    return f"pages {joined(f'{own} of {band_text(bands, band)}' for band, own in per_band.items())}"


def which_pages(pages: Collection[int]) -> str:
    """Pages of a use, which are none where it may be of any."""
    return f"pages {sorted(pages)}" if pages else "any page"


def bytes_text(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges of bytes, each with its end behind it and adjacent ones as one: `bytes 32..96`."""
    ends: list[list[int]] = []
    for low, high in sorted(ranges):
        if ends and low <= ends[-1][1]:
            ends[-1][1] = max(ends[-1][1], high)
        else:
            ends.append([low, high])
    return f"bytes {joined(f'{low}..{high}' for low, high in ends)}"


def book_text(counts: tuple[int, int, int, int], span: tuple[int, int]) -> str:
    """One band as somebody counts it: its pages by state, and its span."""
    return f"{counts_text(counts)} in span {span[0]}..{span[1]}"


def counts_text(counts: tuple[int, int, int, int]) -> str:
    """Pages of one band by state."""
    return "live {}, holes {}, pending {}, fixed {}".format(*counts)
