"""A request that goes on at a peer: what is sent last, and what becomes of it here."""

import pytest

from harness.ops import (
    Abort,
    AbortTransfer,
    BeginSend,
    Decode,
    FailTransfer,
    HandOver,
    IdleCheck,
    Launch,
    Outcome,
    Process,
    Round,
)
from harness.requests import Phase, Request
from harness.runner import Run
from harness.world import World
from tests.harness.backed import ends_empty
from tests.harness.lived_in import run_when
from tests.harness.test_parked import apply

SCENARIOS = ("peers", "everything")


def finished_prompts(world: World) -> list[Request]:
    """Requests between two steps that have run their prompt and a token of a page not full yet."""
    return [
        r
        for r in world.running.values()
        if r.prompt <= r.length < r.total
        and not (r.prepared or r.source)
        and not world.transfers.sends_of(r.name)
        and not world.host.waits_for_submission(r.pages, world.states.slot_of(world, r))
    ]


def is_quiet(world: World) -> bool:
    """There is one, no transfer is under way, and no step is open."""
    is_between = world.open_step is None and world.unsynced_step is None
    return is_between and not world.transfers.names() and bool(finished_prompts(world))


def leaving(name: str) -> tuple[Run, Request]:
    """A run whose request has been handed over; no round has started its send."""
    run = run_when(name, is_quiet)
    request = finished_prompts(run.world)[0]
    apply(run, BeginSend("send", 0, request.name), HandOver("send"))
    return run, request


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_request_is_over_here_once_the_peer_has_everything(name: str) -> None:
    run, request = leaving(name)
    assert request.phase is Phase.LEAVING
    before = run.world.probes["handed_over"]
    run.execute(IdleCheck())
    assert run.violations == []
    assert request.name not in run.world.requests
    assert run.world.probes["handed_over"] == before + 1
    assert ends_empty(run)


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_is_scheduled_no_more(name: str) -> None:
    run, request = leaving(name)
    assert run.execute(Launch((request.name,))) is Outcome.SKIPPED
    assert run.execute(Decode((request.name,))) is Outcome.SKIPPED


def test_its_state_is_the_last_part() -> None:
    run, request = leaving("everything")
    world = run.world
    (part,) = world.transfers.sends["send"].contents
    slot = world.states.slot_of(world, request)
    assert part[world.state_band] == [bytes(world.truth.content[world.state_band][slot] or b"")]


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_runs_on_where_its_send_never_began(name: str) -> None:
    run, request = leaving(name)
    length = request.length
    apply(run, AbortTransfer("send"))
    run.execute(Round())
    assert run.violations == []
    assert (request.phase, request.length) == (Phase.RUNNING, length)
    assert ends_empty(run)


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_starts_again_where_a_peer_may_still_read_it(name: str) -> None:
    run, request = leaving(name)
    for _ in list(run.world.steps):
        run.execute(Process())
    run.execute(Round())
    apply(run, FailTransfer("send", 0))
    run.execute(Round())
    assert run.violations == []
    assert (request.phase, request.pages) == (Phase.QUEUED, [])
    assert ends_empty(run)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_abort_frees_it_under_the_peer(name: str) -> None:
    run, request = leaving(name)
    run.execute(Round())
    apply(run, Abort(request.name))
    assert request.name not in run.world.requests
    assert ends_empty(run)
