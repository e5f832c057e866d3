"""The replay that writes everything down: it sees what really happens and changes nothing."""

from itertools import pairwise

import pytest

from harness.device.modeled import ModeledDevice
from harness.device.submissions import LANE_NAMES
from harness.report.recorder import RecordingRun, record
from harness.report.recording import FENCED, HELD, HOLE, LIVE, PENDING, UNCLAIMED, RunTime
from harness.runner import Run, run_seed, run_trace
from harness.scenario import Setup
from harness.world import SubjectFactory
from tests.harness.lived_in import scenario
from tests.report.stories import PLAIN, RACE, case_of, race, under_a_copy, under_a_peer, wrong_read
from unikv.device.port import Stream

HOST = LANE_NAMES.index("host")


def recorded_seed(name: str, seed: int, plant: str | None) -> tuple[str, str, RecordingRun]:
    """Digests of a seed as it is and with everything written down, and that run."""
    runs: list[RecordingRun] = []

    def build(setup: Setup, plant: str | None, subject: SubjectFactory) -> Run:
        runs.append(RecordingRun(setup, plant, subject))
        return runs[-1]

    plain = run_seed(scenario(name), name, seed, 60, plant=plant)
    noted = run_seed(scenario(name), name, seed, 60, plant=plant, build=build)
    return plain.digest, noted.digest, runs[0]


@pytest.mark.parametrize("name", ["smoke", "hybrid", "host_tier", "peers"])
def test_writing_down_changes_nothing(name: str) -> None:
    plain, noted, _ = recorded_seed(name, 3, None)
    assert plain == noted


@pytest.mark.parametrize(
    "plant", ["moves-unordered", "side-stream-not-joined", "row-read-behind-the-read-end"]
)
def test_a_fault_of_the_device_stays_what_it_is(plant: str) -> None:
    plain, noted, _ = recorded_seed("hybrid", 2, plant)
    assert plain == noted


def test_what_a_fault_turns_a_launch_into_is_what_is_noted() -> None:
    _, _, run = recorded_seed("hybrid", 2, "side-stream-not-joined")
    bodies = {launch.role for launch in run.recording().launches if launch.kind == "body"}
    assert "side" in bodies


def test_a_normal_run_meets_no_recorder() -> None:
    assert type(Run(PLAIN, None).world.device) is ModeledDevice


def test_a_race_names_its_two_launches() -> None:
    recording = race().recording
    assert recording.collision is not None
    earlier, later, space, unit = recording.collision
    assert [recording.launches[number].kind for number in (earlier, later)] == ["body", "move"]
    assert (space, unit) == ("arena", 1)


def test_clocks_say_what_comes_before() -> None:
    recording = race().recording
    body, move = (side.launch for side in race().sides)
    assert (body.epoch, move.clock[Stream.FORWARD]) == (2, 1)
    assert all(launch.clock[launch.lane] >= 1 for launch in recording.launches)


def test_a_wrong_read_names_its_rank_and_its_launch() -> None:
    recording = wrong_read().recording
    assert recording.wrong_read is not None
    rank, launch, space, unit = recording.wrong_read
    assert (rank, recording.launches[launch].kind, space, unit) == (0, "metadata", "rows", 0)


def test_every_operation_has_a_frame_with_every_page() -> None:
    frames = race().recording.frames
    states = [frame.ranks[0][0].states for frame in frames]
    assert states[1] == bytes([UNCLAIMED, UNCLAIMED, UNCLAIMED])
    assert states[3] == bytes([UNCLAIMED, LIVE, LIVE])
    assert states[4] == bytes([UNCLAIMED, LIVE, HOLE])
    assert states[8] == bytes([UNCLAIMED, PENDING, LIVE])
    assert [frame.ranks[0][0].owners for frame in frames][8] == (0, 0, 2)


def test_ticks_of_operations_follow_each_other() -> None:
    frames = race().recording.frames
    assert frames[0].ticks[0] == 0
    for one, next_one in pairwise(frames):
        assert one.ticks[0] < one.ticks[1] == next_one.ticks[0]
    assert race().recording.operation_at(frames[5].ticks[1] - 1) == 5


def test_a_page_that_is_given_up_under_a_peer_keeps_its_mark() -> None:
    states = [frame.ranks[0][0].states for frame in under_a_peer().recording.frames]
    held = [page for page, state in enumerate(states[2]) if state == LIVE | HELD]
    assert held
    assert [states[3][page] for page in held] == [UNCLAIMED | HELD]


def test_a_page_that_is_given_up_under_a_copy_keeps_its_mark() -> None:
    states = [frame.ranks[0][0].states[1] for frame in under_a_copy().recording.frames]
    assert states[4:] == [LIVE, UNCLAIMED | FENCED, LIVE | FENCED]


@pytest.mark.parametrize("name", ["smoke", "host_tier", "peers"])
def test_launches_of_one_stream_run_one_after_the_other(name: str) -> None:
    _, _, run = recorded_seed(name, 3, None)
    recording = run.recording()
    for runs in recording.runs:
        for lane in range(len(recording.lanes)):
            mine = [run for number, run in runs.items() if recording.launches[number].lane == lane]
            assert mine == sorted(mine, key=lambda time: time.start)
            for one, next_one in pairwise(mine):
                assert one.end is not None
                assert one.end < next_one.start


def test_nothing_starts_before_it_is_enqueued() -> None:
    _, _, run = recorded_seed("hybrid", 3, None)
    recording = run.recording()
    for runs in recording.runs:
        for number, time in runs.items():
            assert time.start > recording.launches[number].submitted


def test_what_the_host_fills_takes_no_time() -> None:
    recording = race().recording
    (fill,) = [launch for launch in recording.launches if launch.lane == HOST]
    assert fill.kind == "fill"
    start = recording.runs[0][fill.number].start
    assert recording.runs[0][fill.number] == RunTime(start, start + 1)


def test_a_wait_leads_from_the_last_launch_waited_for_to_the_first_behind_it() -> None:
    arrows = race().recording.arrows()
    assert [(one.role, one.epoch, other.name) for one, other in arrows] == [
        ("schedule", 7, "metadata of step 1"),
        ("forward", 1, "move"),
    ]


def test_a_recording_of_a_case_stops_where_it_fails() -> None:
    case = case_of("move-over-writer", RACE)
    recording = record(case)
    assert len(recording.frames) == len(RACE)
    (violation,) = run_trace(PLAIN, RACE, plant="move-over-writer").violations
    assert recording.violation == violation
