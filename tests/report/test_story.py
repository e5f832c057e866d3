"""One failure put together: of several that one operation shows, the one that was stored."""

from functools import cache
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from harness.case import Case, save_case
from harness.cli import main
from harness.ops import Admit, Arrive, Launch
from harness.report.folder import files_of
from harness.report.story import Story, tell
from harness.runner import run_trace
from harness.violation import Violation
from tests.report.stories import COMMAND, case_of

TOGETHER = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
)


@cache
def shown_together() -> tuple[Violation, ...]:
    """What a launch that waits for nothing shows: races in three tables, and a wrong read."""
    case = case_of("launch-without-schedule", TOGETHER)
    return run_trace(case.setup, case.operations, plant=case.plant).violations


def case_for(violation: Violation) -> Case:
    """The case of that launch, stored for one of its violations."""
    case = case_of("launch-without-schedule", TOGETHER)
    return msgspec.structs.replace(case, violation=violation)


def story_for(violation: Violation) -> Story:
    """The story of that case."""
    story = tell(case_for(violation), COMMAND)
    assert story is not None
    return story


def test_several_promises_are_broken_together() -> None:
    signatures = [violation.signature for violation in shown_together()]
    assert len(set(signatures)) == len(signatures) > 2
    assert {violation.check for violation in shown_together()} == {"ordering", "content"}


def test_a_story_is_about_the_violation_that_was_stored() -> None:
    for violation in shown_together():
        assert story_for(violation).violation == violation


def test_its_accesses_are_those_of_that_violation() -> None:
    for violation in shown_together():
        sides = story_for(violation).sides
        assert [side.note for side in sides] == list(violation.accesses)
        kinds = [note.kind.partition(" ")[0] for note in violation.accesses]
        assert [side.launch.kind for side in sides] == kinds


def test_its_place_is_that_of_that_violation() -> None:
    titles = {
        violation.accesses[-1].holder: story_for(violation).followed[0].place.title
        for violation in shown_together()
        if violation.check == "ordering"
    }
    assert titles == {
        "rows": "request row 0",
        "map": "page map entry 1 of band 'full'",
        "live": "page 2 of band 'full'",
    }


def test_a_violation_behind_another_has_all_its_files() -> None:
    for violation in shown_together():
        files = files_of(case_for(violation), COMMAND)
        assert violation.missing_edge in files["report.md"].decode().replace("&lt;", "<")


def test_a_failure_of_another_signature_has_no_story() -> None:
    other = msgspec.structs.replace(shown_together()[1], detail="other")
    assert tell(case_for(other), COMMAND) is None


@pytest.mark.parametrize("options", [["explain", "--seeds", "0"], ["replay", "--step"]])
def test_what_is_said_is_about_the_stored_violation(options: list[str], tmp_path: Path) -> None:
    violation = shown_together()[1]
    path = tmp_path / "min.json"
    save_case(path, case_for(violation))
    result = CliRunner().invoke(main, [*options, str(path)], input="failure\nreport\n")
    assert result.exit_code == 1
    assert violation.missing_edge in " ".join(result.stdout.split())
