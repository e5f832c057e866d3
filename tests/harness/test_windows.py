"""Windows: what a forward reads follows from its own rule, and a wrong retirement is reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.faults.parts import become
from harness.ops import Advance, Launch, Outcome
from harness.requests import Request
from harness.windows import Retirement, first_attended_page, first_kept_page
from harness.world import World
from tests.harness.lived_in import may_launch, run_when


class KeepsAll(Retirement):
    """Retires nothing."""

    __slots__ = ()

    def first_retained(self, position: int, floor: int, window: int, slots_per_page: int) -> int:
        """Every row is kept."""
        return 0


class ForgetsTheFloor(Retirement):
    """Looks at the request's own tokens only."""

    __slots__ = ()

    def first_retained(self, position: int, floor: int, window: int, slots_per_page: int) -> int:
        """As if nobody resumed anywhere."""
        return self.first_needed(position, window, slots_per_page)


class ARowShort(Retirement):
    """Retires a row of four tokens too early."""

    __slots__ = ()

    def first_retained(self, position: int, floor: int, window: int, slots_per_page: int) -> int:
        """The row behind the first one that is needed."""
        return super().first_retained(position, floor, window, slots_per_page) + 1


def retirable(world: World) -> list[Request]:
    """Requests with a window row that none of their tokens attends any more."""
    band, slots = world.window_bands[0], world.setup.page_slots
    window = world.setup.bands[band].window
    return [
        request
        for request in world.running.values()
        if not world.transfers.sends_of(request.name)
        and request.window_first[band] < first_attended_page(request.length, window, slots)
    ]


def may_retire(world: World) -> bool:
    """The engine may retire a row, and then launch."""
    return bool(may_launch(world) and world.unsynced_step is None and retirable(world))


@given(st.integers(0, 200), st.integers(1, 50), st.integers(1, 16))
def test_a_forward_reads_exactly_the_pages_of_its_window(
    position: int, window: int, slots: int
) -> None:
    attended = [token for token in range(position + 1) if token > position - window]
    assert first_attended_page(position, window, slots) == min(attended) // slots


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 50), st.integers(1, 16))
def test_a_row_is_kept_for_the_next_token_and_for_who_resumes(
    position: int, floor: int, window: int, slots: int
) -> None:
    starts = [position, floor]
    attended = [t for start in starts for t in range(start + 1) if t > start - window]
    assert first_kept_page(position, floor, window, slots) == min(attended) // slots


def test_a_row_that_is_kept_for_nobody_is_reported() -> None:
    run = run_when("hybrid", may_retire)
    request = retirable(run.world)[0]
    become(run.world.retirement, KeepsAll)
    run.execute(Advance(request.name))
    told = {(v.check, v.detail): v.what for v in run.violations}
    text = told["ledger", "window row kept for nobody"]
    assert f"{request.name} keeps its rows from page 0 on" in text


def test_a_row_that_whoever_resumes_needs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_when("hybrid", may_retire)
    monkeypatch.setattr(type(run.world.states), "floor", lambda *_: 0)
    become(run.world.retirement, ForgetsTheFloor)
    run.execute(Advance(retirable(run.world)[0].name))
    found = {(violation.check, violation.detail) for violation in run.violations}
    assert ("ledger", "window row of a checkpoint given up") in found
    assert "which whoever resumes at token 0 attends" in run.violations[0].what


def test_a_row_that_its_request_attends_is_missed_when_it_is_read() -> None:
    run = run_when(
        "hybrid", lambda world: may_retire(world) and any(r.prepared for r in retirable(world))
    )
    become(run.world.retirement, ARowShort)
    name = next(request.name for request in retirable(run.world) if request.prepared)
    assert run.execute(Advance(name)) is Outcome.DONE
    assert run.violations == []
    run.execute(Launch((name,)))
    assert ("content", "wrong bytes in program order") in {
        (violation.check, violation.detail) for violation in run.violations
    }
