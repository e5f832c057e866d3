"""The operations as a Hypothesis state machine, to subclass in your own tests.

Hypothesis chooses a header and then a few bytes for every operation (`harness.fuzz.inputs`), so the
scheduler that draws operations is the one of all other runs, and a shrunk example is a short list
of them with mostly zeros in their bytes.  Every check runs after every operation; a broken promise
is an `AssertionError` whose text is the report.

    from pathlib import Path

    from hypothesis import settings

    from harness.fuzz.hypothesis_machine import AllocatorMachine
    from harness.loading import load_scenario


    class MyMachine(AllocatorMachine):
        scenario = load_scenario(Path("scenarios/smoke.yaml"))
        subject = MySubject  # any `harness.subject.Subject`; without this line, unikv itself


    TestMine = MyMachine.TestCase
    TestMine.settings = settings(max_examples=50, stateful_step_count=100, deadline=None)

Which examples are tried, and how they are made small, is not known here.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import msgspec
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from harness.case import Case, load_case
from harness.errors import InputError
from harness.fuzz.inputs import FRAME_BYTES, HEADER_BYTES, NO_SEED, InputRun, Target, case_of
from harness.ops import Operation, Outcome
from harness.report.text import describe, render
from harness.scenario import Scenario
from harness.subject import Subject
from harness.sweep.artifacts import write_text
from harness.sweep.findings import replay_command
from harness.unikv_subject import UnikvSubject
from unikv.device.port import CopyDevice, StorageLayout

REPLAY_BY_HYPOTHESIS = "run the test again: Hypothesis tries the example it has kept first"

_HEADERS = st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES)
_FRAMES = st.binary(min_size=FRAME_BYTES, max_size=FRAME_BYTES)


class AllocatorMachine(RuleBasedStateMachine):
    """One world under Hypothesis.

    Attributes:
        scenario: the workload family; a subclass has to give one.
        plant: id of a planted fault, to see that the test can fail.
        cases: folder for failing cases, one file for each signature, the smallest so far.  None
            writes none.
    """

    scenario: ClassVar[Scenario]
    plant: ClassVar[str | None] = None
    cases: ClassVar[Path | None] = None

    _running: InputRun

    def subject(self, layout: StorageLayout, device: CopyDevice) -> Subject:
        """The allocator under test, for one rank; a subclass may name its class instead."""
        return UnikvSubject(layout, device)

    @initialize(header=_HEADERS)
    def build(self, header: bytes) -> None:
        """Draw a setup and a mix of operations, and build the world.

        Raises:
            InputError: if the class gives no scenario.
        """
        self._running = InputRun(self._target(), header)

    @rule(frame=_FRAMES)
    def operate(self, frame: bytes) -> None:
        """Draw one operation, apply it, and check everything."""
        self._judge(*self._running.step(frame))

    def teardown(self) -> None:
        """Bring the world to an empty rest; whoever broke a promise has no rest."""
        if not hasattr(self, "_running") or self._running.violations:
            return
        for done in self._running.finish():
            self._judge(*done)

    def _target(self) -> Target:
        kind = type(self)
        scenario = getattr(kind, "scenario", None)
        if not isinstance(scenario, Scenario):
            raise InputError(
                f"{kind.__name__}.scenario is {scenario!r}; want a Scenario, for example"
                " load_scenario(Path('scenarios/smoke.yaml'))"
            )
        return Target(kind.__name__, scenario, 0, kind.plant, self.subject)

    def _judge(self, operation: Operation, outcome: Outcome) -> None:
        """Show the operation, and fail with the report if it broke a promise."""
        note(f"{describe(operation)}: {outcome.value}")
        violations = self._running.violations
        if not violations:
            return
        run = self._running.run
        target = self._target()
        case = case_of(target, run.result(target.name, NO_SEED), violations[0])
        raise AssertionError(self._report(case))

    def _report(self, case: Case) -> str:
        """Keep a case where cases are kept; what to read about it, also where it cannot be."""
        again = REPLAY_BY_HYPOTHESIS
        if self.cases is None:
            return render(case, case.violation, again)
        path = self.cases / f"{case.violation.short_signature}.json"
        try:
            _keep_smaller(path, case)
        except (InputError, OSError) as error:
            return f"{render(case, case.violation, again)}\nnot written: {error}\n"
        # The command line knows no other allocator.
        is_unikv = type(self).subject is AllocatorMachine.subject
        replay = replay_command(path) if is_unikv else f"{again}; its operations are in {path}"
        return render(case, case.violation, replay)


def _keep_smaller(path: Path, case: Case) -> None:
    """Write a case, unless one of its signature is there that is as short.

    Raises:
        InputError: if the file that is there is no case, or cannot be replaced.
        OSError: if its folder cannot be made.
    """
    if path.exists() and len(load_case(path).operations) <= len(case.operations):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, msgspec.json.format(msgspec.json.encode(case), indent=1).decode() + "\n")
