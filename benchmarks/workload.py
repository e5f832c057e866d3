"""The allocator workload, version 1: a seeded stream of takes, frees and questions, and its costs.

    python -m benchmarks.workload [--pages N ...] [--slots N ...] [--seed N] [--full]

One CPU thread, bookkeeping only.  The rows and what exactly is timed in each are in
`benchmarks.workload_rows` and `benchmarks.workload_churn`; all chance comes from `random.Random`
with the given seed.  Three tables: our figures, their ratio to the figures of another allocator
that ran elsewhere, and how they grow from the smallest pool to the largest.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping, Sequence
from itertools import chain as chained
from time import perf_counter

from benchmarks.workload_churn import churn, overlapped_churn
from benchmarks.workload_peer import PEER, SLOTS, SOURCE
from benchmarks.workload_pool import Measured, PoolSize
from benchmarks.workload_rows import decode, prefill_and_free, worst_compaction, worst_float

PAGES = (4096, 32768, 262144)
SLOTS_PER_PAGE = (1, 64)
QUICK_PAGES, QUICK_SLOTS = PAGES[:2], (64,)

LABEL, CELL = 52, 12

Table = Mapping[PoolSize, Mapping[str, Measured]]
"""Cells by column, then by row; the rows of every column come in the same order."""


def measure(size: PoolSize, seed: int) -> Mapping[str, Measured]:
    """Every row of one column, in the order in which they run."""
    cells = chained(
        prefill_and_free(size),
        decode(size),
        churn(size, seed),
        overlapped_churn(size, seed),
        worst_compaction(size, seed),
        worst_float(size, seed),
    )
    return {cell.row: cell for cell in cells}


def print_ours(table: Table) -> None:
    """One row per figure, one column per pool size; remarks are numbered below."""
    remarks: list[str] = []
    print(f"{'P/s':<{LABEL}}" + "".join(f"{size!s:>{CELL}}" for size in table))
    for row, cell in _first(table).items():
        line = f"{f'{row} ({cell.unit})':<{LABEL}}"
        for column in table.values():
            mark, note = "", column[row].note
            if note:
                if note not in remarks:
                    remarks.append(note)
                mark = f"[{remarks.index(note) + 1}]"
            line += f"{_figure(column[row].value) + mark:>{CELL}}"
        print(line)
    for number, remark in enumerate(remarks, start=1):
        print(f"  [{number}] {remark}")


def print_ratios(table: Table) -> None:
    """Times faster than the other allocator, where it has a figure for the same pool."""
    columns = [size for size in table if size.slots == SLOTS]
    if not columns:
        return
    print(f"\n{SOURCE}: ours, theirs, and how many times faster ours is.")
    print("The two were run on different machines, so the ratios are too.")
    print(f"{'P/s':<{LABEL}}" + "".join(f"{size!s:>27}" for size in columns) + f"{'aim':>6}")
    for row, peer in PEER.items():
        line = f"{f'{row} ({_first(table)[row].unit})':<{LABEL}}"
        for size in columns:
            ours, theirs = table[size][row], peer.figures.get(size.pages)
            if ours.value is None or theirs is None:
                line += f"{_figure(ours.value):>9}{_figure(theirs):>9}{'-':>9}"
                continue
            # Of a rate, more is faster; of a time, less.
            ratio = ours.value / theirs if ours.unit == "1/s" else theirs / ours.value
            line += f"{_figure(ours.value):>9}{_figure(theirs):>9}{f'{ratio:.1f}x':>9}"
        print(f"{line}{f'{peer.aim}x':>6}")


def print_growth(table: Table) -> None:
    """Figure of the largest pool over that of the smallest, for each page size."""
    spans = [(smallest, largest) for smallest, largest in _extremes(table) if smallest != largest]
    if not spans:
        return
    print("\nGrowth: the figure of the largest pool over that of the smallest; 1 is flat.")
    head = "".join(f"{f'{large} : {small}':>20}" for small, large in spans)
    print(f"{'P/s':<{LABEL}}{head}")
    for row in _first(table):
        line = f"{row:<{LABEL}}"
        for smallest, largest in spans:
            before, after = table[smallest][row].value, table[largest][row].value
            line += f"{_figure(after / before) if before and after else '-':>20}"
        print(line)


def _first(table: Table) -> Mapping[str, Measured]:
    return next(iter(table.values()))


def _extremes(table: Table) -> list[tuple[PoolSize, PoolSize]]:
    by_slots: dict[int, list[PoolSize]] = {}
    for size in sorted(table):
        by_slots.setdefault(size.slots, []).append(size)
    return [(sizes[0], sizes[-1]) for sizes in by_slots.values()]


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workload")
    parser.add_argument(
        "--pages", type=int, nargs="+", choices=PAGES, default=QUICK_PAGES, metavar="N",
        help=f"pages per side: {PAGES}; default {QUICK_PAGES}",
    )  # fmt: skip
    parser.add_argument(
        "--slots", type=int, nargs="+", choices=SLOTS_PER_PAGE, default=QUICK_SLOTS, metavar="N",
        help=f"tokens per page: {SLOTS_PER_PAGE}; default {QUICK_SLOTS}",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of all chance; default 0")
    parser.add_argument("--full", action="store_true", help="all pages and slots; takes minutes")
    return parser.parse_args()


def _sizes(pages: Sequence[int], slots: Sequence[int]) -> list[PoolSize]:
    return [PoolSize(count, tokens) for tokens in sorted(slots) for count in sorted(pages)]


def main() -> None:
    """Measure the chosen pools one after another, then print what there is to compare."""
    given = _arguments()
    sizes = _sizes(PAGES, SLOTS_PER_PAGE) if given.full else _sizes(given.pages, given.slots)
    start = perf_counter()
    table = {size: measure(size, given.seed) for size in sizes}
    print(
        f"seed {given.seed}, Python {platform.python_version()},"
        f" {perf_counter() - start:.0f} s; medians of CPU time\n"
    )
    print_ours(table)
    print_ratios(table)
    print_growth(table)


if __name__ == "__main__":
    main()
