"""A capacity rule before its judge: what it says of a snapshot beside what the search finds.

A yes or no is compared with a search that tries every layout, and spans are looked at page by page:
whether they are long enough, hold what must stay, and lie in order between sink and arena end.
Nothing here computes a layout, and nothing is asked of the rule but its public answers, so a wrong
rule can be put before the judge as well as the right one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from harness.check.layout_search import layout_exists
from unikv.alloc import pricing
from unikv.alloc.pricing import Spans, Step
from unikv.alloc.snapshot import ChainView

Interval = tuple[int, int]


class Rule(NamedTuple):
    """The three questions, as `unikv.alloc.pricing` answers them."""

    feasible: Callable[[ChainView, Sequence[int]], bool]
    plan: Callable[[ChainView, Sequence[int], Step], Spans | None]
    first_plan: Callable[[ChainView, Sequence[int]], tuple[Step, Spans] | None]


OURS = Rule(pricing.feasible, pricing.plan, pricing.first_plan)


class Verdict(NamedTuple):
    """One question.

    Attributes:
        question: its name.
        is_served: what the search says: whether any layout serves the demand.
        mistake: what is wrong with the rule's answer; empty if nothing is.
    """

    question: str
    is_served: bool
    mistake: str


def judge(rule: Rule, view: ChainView, demand: Sequence[int]) -> Iterator[Verdict]:
    """Ask a rule everything about a snapshot: one verdict per question, always in this order."""
    served = {step: exists(view, demand, step) for step in Step}
    some = served[Step.RELAYOUT]
    told = rule.feasible(view, demand)
    yield Verdict("feasible", some, _difference(is_served=some, is_promised=told))
    for step in Step:
        spans = rule.plan(view, demand, step)
        mistake = _difference(is_served=served[step], is_promised=spans is not None)
        if spans is not None:
            mistake = mistake or spans_flaw(view, demand, step, spans)
        yield Verdict(f"plan {step.name}", served[step], mistake)
    first = rule.first_plan(view, demand)
    mistake = _difference(is_served=some, is_promised=first is not None)
    if first is not None and not mistake:
        least = next(step for step in Step if served[step])
        mistake = spans_flaw(view, demand, first[0], first[1])
        if first[0] is not least:
            mistake = f"{first[0].name}, but {least.name} is enough"
    yield Verdict("first_plan", some, mistake)


def _difference(*, is_served: bool, is_promised: bool) -> str:
    if is_served == is_promised:
        return ""
    return "no, but the search finds a layout" if is_served else "yes, but no layout serves it"


def exists(view: ChainView, demand: Sequence[int], step: Step) -> bool:
    """What the exhaustive search says when `step` decides what is pinned."""
    bands = [
        (band.page_bytes, band.used, *pin)
        for band, pin in zip(view.bands, pins(view, step), strict=True)
    ]
    return layout_exists(view.total_bytes, view.sink_bytes, bands, demand)


def pins(view: ChainView, step: Step) -> list[Interval]:
    """Per band, the pages that `step` leaves where they are; an empty interval where none."""
    last = len(view.bands) - 1
    return [
        (band.low, band.high)
        if step is Step.NO_MOVE or (step is Step.FLUSH_ENDS and 0 < index < last)
        else (band.pin_low, band.pin_high)
        for index, band in enumerate(view.bands)
    ]


def spans_flaw(view: ChainView, demand: Sequence[int], step: Step, spans: Spans) -> str:
    """Why spans do not serve a demand; empty if they do."""
    last = len(view.bands) - 1
    for index, (band, pin, (low, high)) in enumerate(
        zip(view.bands, pins(view, step), spans, strict=True)
    ):
        place = f"band {index}: span [{low}, {high})"
        if high - low < band.used + demand[index]:
            return f"{place} holds fewer pages than {band.used} used and {demand[index]} wanted"
        if pin[0] < pin[1] and not low <= pin[0] <= pin[1] <= high:
            return f"{place} leaves out pages of [{pin[0]}, {pin[1]}), which stay"
        if index == last and high != band.wall:
            return f"{place} does not end at page {band.wall}"
        if index == 0 < last and low != band.wall:
            return f"{place} does not start at page {band.wall}"
    if not is_in_order(in_bytes(view, spans), view.sink_bytes):
        return f"spans {spans} cross each other or the sink"
    return ""


def in_bytes(view: ChainView, spans: Sequence[Interval]) -> list[Interval]:
    """Spans in bytes of the arena instead of pages of their band."""
    return [
        (low * band.page_bytes, high * band.page_bytes)
        for band, (low, high) in zip(view.bands, spans, strict=True)
    ]


def is_in_order(spans: Sequence[Interval], sink_bytes: int) -> bool:
    """Whether spans in bytes lie above the sink, one above the other; an empty float has none."""
    boundary = sink_bytes
    last = len(spans) - 1
    for index, (low, high) in enumerate(spans):
        if low == high and 0 < index < last:
            continue
        if low < boundary:
            return False
        boundary = high
    return True
