"""Microseconds of CPU time per capacity question, for chains of two to six bands.

    python -m benchmarks.pricing

Three chains per size, since what a question costs depends on its answer: one that
is served in place, one that needs every float moved, and one that is refused.
Compare columns of one run only: the figures are those of this machine.
"""

from collections.abc import Callable
from time import thread_time
from typing import NamedTuple

from unikv.alloc.pricing import Step, feasible, first_plan, most_pages, move_order, plan
from unikv.alloc.snapshot import BandView, ChainView

BAND_COUNTS = range(2, 7)
CALLS = 4_000
REPEATS = 7
# A state slot, windows and full attention: strides that do not divide each other.
STRIDES = (40, 6, 3, 7, 5)
HIGH_STRIDE = 10
FLOAT_BYTES = 420
SINK_BYTES = 40


class Question(NamedTuple):
    """A named question of one view."""

    name: str
    ask: Callable[[], object]


def main() -> None:
    rows = [questions(count) for count in BAND_COUNTS]
    print(f"{'us per question':<32}" + "".join(f"{count:>8} bands" for count in BAND_COUNTS))
    for column in zip(*rows, strict=True):
        figures = "".join(f"{microseconds(question.ask):>14.2f}" for question in column)
        print(f"{column[0].name:<32}{figures}")


def questions(band_count: int) -> list[Question]:
    """The same questions of a chain with this many bands."""
    view = crowded_chain(band_count)
    in_place = (1,) * band_count
    moved = (3, *(4 for _ in range(band_count - 2)), 8 if band_count == 2 else 30)
    refused = (view.total_bytes, *(0 for _ in range(band_count - 1)))
    spans = plan(view, moved, Step.RELAYOUT)
    assert spans is not None
    assert plan(view, in_place, Step.NO_MOVE) is not None
    assert (plan(view, moved, Step.FLUSH_ENDS) is None) == (band_count > 2)
    assert not feasible(view, refused)
    return [
        Question("feasible, yes", lambda: feasible(view, in_place)),
        Question("feasible, no", lambda: feasible(view, refused)),
        Question("plan in place", lambda: plan(view, in_place, Step.NO_MOVE)),
        Question("plan a relayout", lambda: plan(view, moved, Step.RELAYOUT)),
        Question("plan, none", lambda: plan(view, refused, Step.RELAYOUT)),
        Question("first_plan in place", lambda: first_plan(view, in_place)),
        Question("first_plan with moves", lambda: first_plan(view, moved)),
        Question("first_plan, none", lambda: first_plan(view, refused)),
        Question("most_pages of the high end", lambda: most_pages(view, moved, band_count - 1)),
        Question("most_pages of the low end", lambda: most_pages(view, moved, 0)),
        Question("move_order", lambda: move_order(view, spans)),
    ]


def crowded_chain(band_count: int) -> ChainView:
    """Ends and floats, each with a claimed span of which half is used."""
    bands = [BandView(STRIDES[0], 1, 1, 5, 2, 0, 0)]
    boundary = 5 * STRIDES[0]
    for stride in STRIDES[1 : band_count - 1]:
        low = -(-(boundary + FLOAT_BYTES // 4) // stride)
        pages = FLOAT_BYTES // 2 // stride
        bands.append(BandView(stride, 0, low, low + pages, pages // 2, 0, 0))
        boundary = (low + pages) * stride + FLOAT_BYTES // 4
    top = boundary // HIGH_STRIDE + 20
    bands.append(BandView(HIGH_STRIDE, top, top - 10, top, 5, 0, 0))
    return ChainView(SINK_BYTES, top * HIGH_STRIDE, tuple(bands))


def microseconds(ask: Callable[[], object]) -> float:
    """Least mean over some repeats: what else the machine does only adds to it."""
    best = float("inf")
    for _ in range(REPEATS):
        start = thread_time()
        for _ in range(CALLS):
            ask()
        best = min(best, thread_time() - start)
    return best / CALLS * 1e6


if __name__ == "__main__":
    main()
