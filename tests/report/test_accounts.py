"""Who may still touch what, as a report tells it."""

import msgspec

from harness.ops import (
    Abort,
    Admit,
    Arrive,
    BeginBackup,
    BeginLoad,
    BeginSave,
    CachePrefix,
    Chunk,
    DropSaved,
    EvictPrefix,
    IdleCheck,
    Launch,
    Pause,
    Record,
    RestoreRow,
    Resume,
    SubmitCopy,
)
from harness.report.accounts import step_facts, step_rows
from harness.report.story import Story
from harness.runner import Run
from harness.scenario import BackendSetup, HostSetup
from harness.unikv_subject import UnikvSubject
from tests.report.stories import PLAIN, race, story_of, under_a_copy, under_a_peer

HOSTED = msgspec.structs.replace(PLAIN, host=(HostSetup(total_bytes=8, bands=(0,)),), overlap=False)

DROPPED_UNDER_A_LOAD = (
    Arrive(request="r0", prompt=1, output=0, blocks=(0,)),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    CachePrefix(request="r0"),
    BeginBackup(copy="copy1", blocks=(0,)),
    SubmitCopy(copy="copy1"),
    EvictPrefix(),
    IdleCheck(),
    BeginLoad(copy="copy1", blocks=(0,)),
    SubmitCopy(copy="copy1"),
    DropSaved(blocks=(0,)),
    BeginSave(copy="copy2", request="r0"),
    SubmitCopy(copy="copy2"),
)

WITH_MEMORY = msgspec.structs.replace(
    PLAIN,
    total_bytes=32,
    bands=(msgspec.structs.replace(PLAIN.bands[0], id_count=3),),
    overlap=False,
    backend=BackendSetup(row_memory=True),
)

RESTORED = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    Arrive(request="r1", prompt=2, output=0, blocks=()),
    Admit(request="r1", tokens=1),
    Launch(requests=("r1",)),
    Chunk(request="r1", tokens=1),
    Pause(request="r1"),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    Resume(request="r1"),
    RestoreRow(request="r1"),
)
"""The memory of row 0 comes back in row 1."""


def test_steps_are_told_by_the_operations_in_which_they_became_what() -> None:
    (row,) = step_rows(race().recording)
    assert (row.number, row.requests) == ("1", "r1")
    assert (row.launched, row.recorded, row.retired, row.processed) == ("5", "6", "", "")


def test_a_step_that_the_schedule_stream_waited_for_is_told_to_be_over() -> None:
    waited = (
        Arrive(request="r0", prompt=1, output=0, blocks=()),
        Admit(request="r0", tokens=1),
        Launch(requests=("r0",)),
        Record(),
        Abort(request="r0"),
    )
    recording = story_of("free-waits", waited).recording
    (row,) = step_rows(recording)
    assert row.retired == "4"
    assert list(step_facts(recording, 4)) == [
        "step 1 is over for the schedule stream, which has waited for its end"
    ]


def test_a_host_slot_is_followed_from_hand_to_hand() -> None:
    story = story_of("host-slot-dropped-under-a-load", DROPPED_UNDER_A_LOAD, HOSTED)
    assert story.violation.what.startswith(
        "host slot 0 of band 'full' (copy2) is overwritten by a backup"
    )
    (follow,) = story.followed
    assert follow.place.title == "host slot 0 of band 'full'"
    hands = {
        entry.operation: fact
        for entry in follow.entries
        for fact in entry.facts
        if fact.startswith(("handed", "given"))
    }
    assert hands == {4: "handed out to copy1", 10: "given back by copy1", 11: "handed out to copy2"}


def test_row_memory_is_followed_in_the_row_that_it_was_saved_from_as_well() -> None:
    launched = (*RESTORED, Launch(requests=("r1",)))
    story = story_of("row-saved-as-a-view", launched, WITH_MEMORY)
    assert story.violation.what == (
        "r1 finds in the memory of row 1 what step 2 wrote, and should find what step 1 wrote"
    )
    titles = [follow.place.title for follow in story.followed]
    assert titles == ["memory of row 1", "memory of row 0"]
    assert 5 in [entry.operation for entry in story.followed[1].entries], "where it was saved"


def test_a_row_in_new_hands_has_no_origin() -> None:
    run = Run(WITH_MEMORY, None, UnikvSubject)
    for operation in RESTORED:
        run.execute(operation)
    assert run.world.rows.restored_from == {1: 0}
    for new_hands in (
        Abort(request="r1"),
        Arrive(request="r2", prompt=1, output=0, blocks=()),
        Admit(request="r2", tokens=1),
    ):
        run.execute(new_hands)
    assert run.world.requests["r2"].row == 1
    assert run.world.rows.restored_from == {}


def ledger_of(story: Story) -> list[tuple[int, str]]:
    """What the history of the first place says of the ledger, with the operation."""
    (_, entries), *_ = story.followed
    return [(at, fact) for at, facts in entries for fact in facts if "ledger" in fact]


def test_a_ledger_shows_what_copies_may_touch() -> None:
    assert ledger_of(under_a_copy()) == [(5, "the allocator's ledger has a use of it: copy_read")]


def test_a_ledger_shows_what_waits_for_a_peer_and_what_a_peer_may_touch() -> None:
    assert ledger_of(under_a_peer()) == [
        (1, "the allocator's ledger has a use of it: receive_hold"),
        (2, "the allocator's ledger has a use of it: network_receive"),
        (2, "the allocator's ledger has it no more: receive_hold"),
        (3, "in the end the ledger has network_receive"),
    ]
