"""The capacity search: it flags nothing on the rule as it is, and each comparison can fail."""

from collections.abc import Callable, Sequence
from typing import cast

import pytest

from benchmarks.capacity_search import Snapshots, main, search_reliefs, search_snapshots
from benchmarks.search.diary_device import DiaryDevice
from benchmarks.search.pricing_judge import OURS, Rule, spans_flaw
from harness.errors import InputError
from harness.sweep.verdict import Exit
from unikv.alloc.chain import ChainAllocator, Taken
from unikv.alloc.pricing import Spans, Step, feasible, first_plan, plan
from unikv.alloc.relief import Relief
from unikv.alloc.snapshot import BandView, ChainView

NUMBERS = range(150)


def without_pins(view: ChainView) -> ChainView:
    """The view as if no page had to stay."""
    bands = tuple(band._replace(pin_low=0, pin_high=0) for band in view.bands)
    return view._replace(bands=bands)


def fits_by_bytes(view: ChainView, demand: Sequence[int]) -> bool:
    """A rule that forgets the remainders between pages of different sizes."""
    need = sum(
        band.page_bytes * (band.used + wanted)
        for band, wanted in zip(view.bands, demand, strict=True)
    )
    return need <= view.total_bytes - view.sink_bytes


def fits_without_pins(view: ChainView, demand: Sequence[int]) -> bool:
    """A rule that would move pages that have to stay."""
    return feasible(without_pins(view), demand)


def plan_without_pins(view: ChainView, demand: Sequence[int], step: Step) -> Spans | None:
    """A plan that moves pages that have to stay."""
    return plan(without_pins(view), demand, step)


def plan_one_page_short(view: ChainView, demand: Sequence[int], step: Step) -> Spans | None:
    """A plan that gives its low end a page less."""
    spans = plan(view, demand, step)
    if spans is None or len(spans) == 1 or spans[0][0] == spans[0][1]:
        return spans
    return ((spans[0][0], spans[0][1] - 1), *spans[1:])


def plan_one_page_low(view: ChainView, demand: Sequence[int], step: Step) -> Spans | None:
    """A plan that puts a float onto its neighbour."""
    spans = plan(view, demand, step)
    if spans is None or len(spans) < 3 or spans[1][0] == spans[1][1]:
        return spans
    return (spans[0], (spans[1][0] - 1, spans[1][1] - 1), *spans[2:])


def plan_that_moves_all(view: ChainView, demand: Sequence[int]) -> tuple[Step, Spans] | None:
    """A first plan that is not the least one."""
    spans = plan(view, demand, Step.RELAYOUT)
    return None if spans is None else (Step.RELAYOUT, spans)


def plan_in_place_only(view: ChainView, demand: Sequence[int]) -> tuple[Step, Spans] | None:
    """A first plan that refuses whatever needs a move."""
    first = first_plan(view, demand)
    return first if first is None or first[0] is Step.NO_MOVE else None


def plan_that_raises(view: ChainView, demand: Sequence[int]) -> tuple[Step, Spans] | None:
    """A first plan that trusts the wrong question."""
    assert feasible(view, demand)
    return first_plan(view, demand)


def agreed(found: Snapshots) -> bool:
    """Whether a search saw no difference."""
    return not found.first and not found.mistaken


def test_the_rule_as_it_is_agrees_with_the_search() -> None:
    found = search_snapshots(OURS, NUMBERS)
    assert agreed(found)
    assert all(0 < found.served[question] < len(NUMBERS) for question in found.asked)


@pytest.mark.parametrize(
    ("rule", "question", "mistake"),
    [
        (OURS._replace(feasible=fits_by_bytes), "feasible", "yes, but no layout"),
        (OURS._replace(feasible=fits_without_pins), "feasible", "yes, but no layout"),
        (OURS._replace(plan=plan_without_pins), "plan RELAYOUT", "yes, but no layout"),
        (OURS._replace(plan=plan_one_page_short), "plan RELAYOUT", "band 0: span"),
        (OURS._replace(plan=plan_one_page_low), "plan RELAYOUT", "cross each other"),
        (OURS._replace(first_plan=plan_that_moves_all), "first_plan", "is enough"),
        (OURS._replace(first_plan=plan_in_place_only), "first_plan", "no, but the search"),
        (OURS._replace(first_plan=plan_that_raises), "without raising", "AssertionError"),
    ],
)
def test_a_wrong_rule_is_seen(rule: Rule, question: str, mistake: str) -> None:
    found = search_snapshots(rule, NUMBERS)
    assert any(question in asked for asked in found.mistaken)
    number = int(found.first.split(":")[0].removeprefix("snapshot "))
    alone = search_snapshots(rule, range(number, number + 1))
    assert alone.first == found.first
    assert mistake in found.first


# Pages of 2, 3 and 1 bytes above a sink of one; page 2 of the float stays.
CROWDED = ChainView(
    1,
    12,
    (
        BandView(2, 1, 1, 2, 1, 0, 0),
        BandView(3, 0, 1, 3, 1, 2, 3),
        BandView(1, 12, 11, 12, 1, 0, 0),
    ),
)


@pytest.mark.parametrize(
    ("spans", "flaw"),
    [
        (((1, 2), (2, 3), (10, 12)), ""),
        (((1, 2), (2, 3), (11, 12)), "band 2: span [11, 12) holds fewer pages"),
        (((1, 2), (1, 2), (10, 12)), "band 1: span [1, 2) leaves out pages of [2, 3)"),
        (((1, 2), (2, 3), (9, 11)), "band 2: span [9, 11) does not end at page 12"),
        (((2, 3), (2, 3), (10, 12)), "band 0: span [2, 3) does not start at page 1"),
        (((1, 4), (2, 3), (10, 12)), "cross each other"),
        (((1, 2), (2, 4), (10, 12)), "cross each other"),
    ],
)
def test_a_flaw_of_spans_is_named(spans: Spans, flaw: str) -> None:
    told = spans_flaw(CROWDED, (0, 0, 1), Step.RELAYOUT, spans)
    assert flaw in told
    assert bool(told) == bool(flaw)


def test_a_search_in_two_parts_asks_the_same() -> None:
    whole = search_snapshots(OURS, range(40))
    parts = [search_snapshots(OURS, numbers) for numbers in (range(15), range(15, 40))]
    assert whole.served == parts[0].served + parts[1].served
    assert whole.kinds == parts[0].kinds + parts[1].kinds


def test_reliefs_are_played_up_to_the_wanted_number() -> None:
    first = search_reliefs(0, 5)
    assert first.reached["reliefs"] >= 5
    assert first.reached["chains"] == first.next
    assert not first.first


def yes(self: Relief, demand: Sequence[int]) -> bool:
    """A capacity question that promises everything."""
    return True


def forget(self: DiaryDevice, *what: object) -> None:
    """A copy that copies nothing."""


def taking(before: Callable[[ChainAllocator], object]) -> Callable[..., Taken]:
    """A take that does something first, whatever it answers then."""
    take = ChainAllocator.take

    def act(self: ChainAllocator, pages: int, slots: int) -> Taken:
        before(self)
        return take(self, pages, slots)

    return act


def wipe(chain: ChainAllocator) -> None:
    """Write over what everybody holds."""
    device = cast(DiaryDevice, chain.parts.device)
    device.arena[:] = bytes(len(device.arena))


@pytest.mark.parametrize(
    ("owner", "name", "plant", "seen"),
    [
        (Relief, "fits", yes, "assert promised =="),
        (DiaryDevice, "move_pages", forget, "id "),
        (
            ChainAllocator,
            "take",
            taking(lambda chain: chain.flush(9)),
            "books(self.chain) == before",
        ),
        (ChainAllocator, "take", taking(wipe), "id "),
    ],
)
def test_a_wrong_relief_is_seen(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, plant: Callable[..., object], seen: str
) -> None:
    monkeypatch.setattr(owner, name, plant)
    found = search_reliefs(0, 50)
    assert found.first.startswith(f"chain {found.next - 1}:")
    assert seen in found.first


def test_a_clean_search_ends_with_the_next_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--snapshots", "20", "--seed", "7"]) is Exit.CLEAN
    assert "go on with --seed 27\n" in capsys.readouterr().out


def test_a_difference_is_printed_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Relief, "fits", yes)
    assert main(["--reliefs", "20"]) is Exit.VIOLATION
    assert "first difference: chain " in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--snapshots", "0"], ["--reliefs", "1", "--seed", "-1"]])
def test_a_number_out_of_range_is_refused(arguments: list[str]) -> None:
    with pytest.raises(InputError, match=r"^--[a-z, -]+: (0|-1): want (1|0) or more$"):
        main(arguments)
