"""The operations under Hypothesis: what fails is found, small, and said in the report's words."""

import inspect
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from harness.case import load_case
from harness.errors import InputError
from harness.fuzz import hypothesis_machine
from harness.fuzz.hypothesis_machine import REPLAY_BY_HYPOTHESIS, AllocatorMachine
from harness.runner import run_trace
from harness.static_subject import StaticSubject
from harness.subject import Subject
from tests.harness.lived_in import scenario
from unikv.device.port import CopyDevice, StorageLayout

ROOT = Path(__file__).parents[2]
SHRUNK_OPERATIONS_MAX = 20


class Sound(AllocatorMachine):
    """The allocator as it is."""

    scenario = scenario("smoke")


class Static(Sound):
    """Another allocator."""

    subject = StaticSubject


class MadeByAMethod(Sound):
    """Another allocator, made with care."""

    def subject(self, layout: StorageLayout, device: CopyDevice) -> Subject:
        """Make one for a rank."""
        return StaticSubject(layout, device)


class Broken(Sound):
    """A planted fault that a few operations show."""

    plant = "row-leaked"


class Aimless(AllocatorMachine):
    """Nobody said what to run."""


def try_out(machine: type[AllocatorMachine], examples: int, steps: int, *phases: Phase) -> None:
    """Let Hypothesis look for a failure and make it small."""
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=phases or (Phase.generate, Phase.shrink),
        print_blob=False,
    )
    run_state_machine_as_test(machine, settings=how)


def failure_of(machine: type[AllocatorMachine], *phases: Phase) -> AssertionError:
    """What Hypothesis ends with."""
    with pytest.raises(AssertionError) as caught:
        try_out(machine, 50, 30, *phases)
    return caught.value


def operations_of(failure: AssertionError) -> int:
    """How many operations the report shows."""
    found = re.search(r"^(\d+) operations, scenario", str(failure), flags=re.MULTILINE)
    assert found
    return int(found[1])


@pytest.mark.parametrize("machine", [Sound, Static, MadeByAMethod])
def test_a_sound_allocator_is_not_reported(machine: type[AllocatorMachine]) -> None:
    try_out(machine, 2, 20)


def test_a_failure_is_said_in_the_words_of_a_report() -> None:
    failure = failure_of(Broken, Phase.generate)
    assert str(failure).startswith("idle: ")
    assert "planted fault row-leaked" in str(failure)
    assert REPLAY_BY_HYPOTHESIS in str(failure)


@pytest.mark.slow
def test_hypothesis_makes_a_failure_small() -> None:
    small = failure_of(Broken)
    assert operations_of(small) <= SHRUNK_OPERATIONS_MAX
    # Every operation is shown beside its bytes.
    assert any("Abort(request='r0'): done" in line for line in small.__notes__)


@pytest.mark.slow
def test_the_smallest_failure_is_kept_as_a_case(tmp_path: Path) -> None:
    class Kept(Broken):
        """Keeps its cases."""

        cases = tmp_path / "cases"

    small = failure_of(Kept)
    (path,) = (tmp_path / "cases").iterdir()
    case = load_case(path)
    assert len(case.operations) == operations_of(small)
    result = run_trace(case.setup, case.operations, plant=case.plant)
    assert result.violations[0].signature == case.violation.signature
    assert f"python -m harness replay {path}" in str(small)


def test_a_failure_is_said_where_its_case_cannot_be_kept(tmp_path: Path) -> None:
    class Kept(Broken):
        """Keeps its cases where a file is."""

        cases = tmp_path / "cases"

    Kept.cases.write_text("mine")
    failure = failure_of(Kept, Phase.generate)
    assert str(failure).startswith("idle: ")
    assert REPLAY_BY_HYPOTHESIS in str(failure)
    assert f"\nnot written: [Errno 17] File exists: '{Kept.cases}'\n" in str(failure)


def test_a_failure_is_said_where_an_earlier_case_is_torn(tmp_path: Path) -> None:
    class Kept(Broken):
        """Keeps its cases beside a torn one."""

        cases = tmp_path

    failure_of(Kept, Phase.generate)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    failure = failure_of(Kept, Phase.generate)
    assert str(failure).startswith("idle: ")
    assert f"\nnot written: {path}: not a case: " in str(failure)


def test_a_machine_without_a_scenario_says_what_it_wants() -> None:
    with pytest.raises(InputError, match=r"Aimless\.scenario is None; want a Scenario"):
        try_out(Aimless, 1, 1)


def test_the_example_of_the_module_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = inspect.getdoc(hypothesis_machine) or ""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text, flags=re.MULTILINE)
    code = textwrap.dedent(max(blocks, key=len))
    names: dict[str, object] = {"MySubject": StaticSubject, "__name__": "example"}
    exec(code, names)
    mine = names["MyMachine"]
    assert isinstance(mine, type)
    assert issubclass(mine, AllocatorMachine)
    assert vars(mine)["subject"] is StaticSubject
    try_out(mine, 2, 20)
