"""Pages of one state in a band, found as fast as bytes are searched.

A state is one byte per page, so the next page of a state is a byte search away.  Where many are
wanted, a piece of the states turns into pages by a table and a filter, neither of which is a loop
of ours.  The cost follows the pages found and the distance between them, not the band's span.
"""

from __future__ import annotations

from itertools import compress

from unikv.alloc.band import Band

# Per state, the byte that stands for it as 1 and every other byte as 0.
_SELECT = tuple(bytes(byte == state for byte in range(256)) for state in range(5))
# The first few pages are searched for one by one, for whoever wants no more; then piece by piece.
_FEW, _PIECE = 64, 4096


def lowest(band: Band, state: int, low: int, high: int, limit: int) -> list[int]:
    """The first `limit` pages in `state` at the depths `[low, high)`, lowest depth first."""
    states, axis = band.states, band.axis
    found: list[int] = []
    depth = states.find(state, low, high)
    while depth >= 0 and len(found) < limit:
        if len(found) < _FEW:
            found.append(axis.base + axis.step * depth)
            depth += 1
        else:
            end = min(high, depth + _PIECE)
            selected = states[depth:end].translate(_SELECT[state])
            found += compress(axis.pages(depth, end), selected)
            depth = end
        if depth == high or states[depth] != state:
            depth = states.find(state, depth, high)
    del found[limit:]
    return found


def highest(band: Band, state: int, low: int, high: int, limit: int) -> list[int]:
    """The first `limit` pages in `state` at the depths `[low, high)`, highest depth first."""
    states, axis = band.states, band.axis
    found: list[int] = []
    depth = states.rfind(state, low, high)
    while depth >= 0 and len(found) < limit:
        if len(found) < _FEW:
            found.append(axis.base + axis.step * depth)
            depth -= 1
        else:
            start = max(low, depth + 1 - _PIECE)
            selected = states[start : depth + 1].translate(_SELECT[state])
            found += compress(reversed(axis.pages(start, depth + 1)), selected[::-1])
            depth = start - 1
        if depth < low or states[depth] != state:
            depth = states.rfind(state, low, depth + 1)
    del found[limit:]
    return found
