"""What the calls and the descriptions of a storage refuse, before anything is touched.

A wrong type would not fail where it enters: `True` counts and indexes like 1, 1.0 compares like it,
and every comparison with NaN is false.  So the exact type is asked, by scans that run in C and cost
a small part of the call.  What an id or a page means is not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import countOf
from reprlib import repr as short

from unikv.errors import LISTED, ArgumentError, UnikvError, listed


def check_int(error: type[UnikvError], what: str, value: int) -> None:
    """Refuse a figure of a model, a budget or a layout that is no int.

    Args:
        error: what the place raises.
        what: the place and the figure's name, for the text.
        value: the figure.

    Raises:
        UnikvError: of the type `error`.
    """
    if type(value) is not int:
        raise error(f"{what} is {short(value)}, a {type(value).__name__}; allowed: an int")


def check_figure(error: type[UnikvError], what: str, value: int, least: int) -> None:
    """As `check_int`, and refuse a figure below `least`."""
    check_int(error, what, value)
    if value < least:
        raise error(f"{what} is {value}; allowed: {least} or more")


def check_counts(call: str, counts: Sequence[int]) -> None:
    """Refuse what is no number of units.

    Args:
        call: the call's name, for the text.
        counts: what it was given.

    Raises:
        ArgumentError: if a count is no int or below 0.
    """
    for count in counts:
        if type(count) is not int or count < 0:
            raise ArgumentError(
                f"{call}: a count is {short(count)}; counts are 0 or more, and ints"
            )


def check_number(call: str, what: str, number: int) -> None:
    """Refuse the number of a step, a row or a copy that is no int.

    Raises:
        ArgumentError: if it is no int.
    """
    if type(number) is not int:
        raise ArgumentError(
            f"{call}: {what} is {short(number)}, a {type(number).__name__}; allowed: an int"
        )


def check_names(call: str, *names: str) -> None:
    """Refuse names that are no words: a transfer is named in texts and traces.

    Raises:
        ArgumentError: if one is no str.
    """
    for name in names:
        if type(name) is not str:
            raise ArgumentError(
                f"{call}: name {short(name)}, a {type(name).__name__}; allowed: a str"
            )


def check_band(call: str, band: int, band_count: int) -> None:
    """Refuse the index of a band outside the chain.

    Raises:
        ArgumentError: if it is no int in `[0, band_count)`.
    """
    if type(band) is not int or not 0 <= band < band_count:
        raise ArgumentError(
            f"{call}: band {short(band)}; allowed: 0..{band_count - 1}, counted from the low end"
        )


def check_ids(call: str, ids: Collection[int]) -> None:
    """Refuse ids or pages that are no ints, `True` and the numbers of an array library among them.

    Raises:
        ArgumentError: naming the first few and how many there are.
    """
    if countOf(map(type, ids), int) != len(ids):
        wrong = [unit for unit in ids if type(unit) is not int]
        more = len(wrong) - LISTED
        text = ", ".join(f"{short(unit)} ({type(unit).__name__})" for unit in wrong[:LISTED])
        raise ArgumentError(
            f"{call}: {text}{f' and {more} more' if more > 0 else ''} among {len(ids)} ids;"
            " allowed: plain ints, as a take answers them (an array has `tolist`)"
        )


def check_ids_per_band(call: str, ids: Sequence[Collection[int]], band_count: int) -> None:
    """Refuse anything but one collection of ids for each band.

    Raises:
        ArgumentError: if there is not one for each band, or an id is no int.
    """
    if len(ids) != band_count:
        raise ArgumentError(
            f"{call}: ids of {len(ids)} bands; allowed: one collection for each of the"
            f" {band_count} bands, empty where it has none"
        )
    for units in ids:
        check_ids(call, units)


def check_slots(call: str, slots: Collection[int], end: int) -> None:
    """Refuse slots, or ids to be looked up, outside `[0, end)`; 0 is padding and allowed.

    Raises:
        ArgumentError: if one is no int, or outside.
    """
    check_ids(call, slots)
    if slots and (min(slots) < 0 or max(slots) >= end):
        wrong = [slot for slot in slots if not 0 <= slot < end]
        raise ArgumentError(f"{call}: {listed(wrong)}; allowed: 0..{end - 1}, where 0 is padding")
