"""The life of a transfer, as tables."""

from itertools import product

import pytest

from unikv.disagg.agreement import Evidence, Opinion, Wish
from unikv.disagg.engine import Judgement
from unikv.disagg.life import (
    LIFE,
    SUCCESS,
    Change,
    Direction,
    Phase,
    due_change,
    is_quiet,
    phase_after,
)
from unikv.errors import TransferError

OPINIONS = [Opinion(*values) for values in product(Wish, Judgement, Evidence)]


@pytest.mark.parametrize(("phase", "change"), list(product(Phase, Change)))
def test_a_phase_allows_what_the_table_says(phase: Phase, change: Change) -> None:
    if (phase, change) in LIFE:
        assert phase_after("a", phase, change) is LIFE[phase, change]
    else:
        with pytest.raises(TransferError, match=f"'a' is {phase.value}.*'{change.value}'"):
            phase_after("a", phase, change)


def test_nothing_happens_to_what_is_over() -> None:
    assert not [change for phase, change in LIFE if phase is Phase.OVER]


def test_only_a_proof_leads_out_of_quarantine() -> None:
    assert [change for phase, change in LIFE if phase is Phase.QUARANTINED] == [Change.PROVE]


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("opinion", OPINIONS)
@pytest.mark.parametrize("parts_left", [0, 1])
def test_what_is_due_is_allowed(phase: Phase, opinion: Opinion, parts_left: int) -> None:
    change = due_change(phase, opinion, parts_left)
    assert change is Change.STAY or (phase, change) in LIFE


@pytest.mark.parametrize("phase", [Phase.SENDING, Phase.RECEIVING, Phase.QUARANTINED])
@pytest.mark.parametrize("opinion", OPINIONS)
def test_what_engines_may_touch_ends_only_when_all_are_quiet(
    phase: Phase, opinion: Opinion
) -> None:
    if LIFE.get((phase, due_change(phase, opinion, 0))) is Phase.OVER:
        assert is_quiet(phase, opinion)


def test_a_send_with_parts_left_is_not_finished() -> None:
    done = Opinion(Wish.GO_ON, Judgement.DONE, Evidence.MISSING)
    assert due_change(Phase.SENDING, done, 1) is Change.STAY


def test_what_was_given_up_is_not_quiet_because_an_engine_says_done() -> None:
    done = Opinion(Wish.STOP, Judgement.DONE, Evidence.MISSING)
    assert not is_quiet(Phase.QUARANTINED, done)


def test_every_direction_has_its_success() -> None:
    assert set(SUCCESS) == set(Direction)
