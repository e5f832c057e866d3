"""The process that a coverage-guided fuzzer lives in: one input, one run; a violation is a crash.

`Fuzz()` never returns, so this is a program of its own that is started by `harness.sweep.fuzzing`
and leaves what it found in files.  Lines of the allocator and situations of the modeled world
(`harness.fuzz.states`) are both what the fuzzer looks for; the second reach it as calls of tiny
functions, one for each situation, that count like any other line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

STATES_MAX = 8192
"""Situations that are told apart; later ones are written down, but lead the fuzzer nowhere."""


class Situations:
    """Tells the fuzzer, and a file, of every situation.

    Invariant: the n-th situation that was ever reached is the n-th line of the file, behind the
    number of its input, and below `STATES_MAX` calls the n-th function.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._inputs = 0
        self._numbers: dict[str, int] = {}
        self._counters = [atheris.instrument_func(_counter()) for _ in range(STATES_MAX)]

    def reached(self, words: set[str]) -> None:
        """An input reached these, each counted once however often it did."""
        self._inputs += 1
        numbers = self._numbers
        # In a fixed order: sets of words are in another one in every process.
        for word in sorted(words):
            number = numbers.get(word)
            if number is None:
                number = numbers[word] = len(numbers)
                self._file.write(f"{self._inputs}\t{word}\n")
            if number < STATES_MAX:
                self._counters[number]()

    def failed(self) -> None:
        """The newest input failed: the fuzzer ends before it says how many there were."""
        # A number without words: how many it took, and nothing new.
        self._file.write(f"{self._inputs}\t\n")


def _counter() -> Callable[[], None]:
    def count() -> None:
        """Is a line that can be covered."""

    return count


def main(arguments: list[str]) -> None:
    """Fuzz until the fuzzer has enough.

    Args:
        arguments: a scenario file, the fault to plant or nothing, how many operations an input may
            have, the file for situations; then libFuzzer's own.
    """
    _, scenario, plant, operations, states, *flags = arguments
    # Only what is imported in here is instrumented, so this is the first import of the allocator.
    with atheris.instrument_imports(include=["unikv"]):
        from harness.choices import SeedChoices
        from harness.fuzz.inputs import Target, run_input
        from harness.fuzz.mutate import cross_inputs, mutate_input
        from harness.fuzz.states import StateRecorder
        from harness.loading import load_scenario
    path = Path(scenario)
    target = Target(path.stem, load_scenario(path), int(operations), plant or None)
    situations = Situations(Path(states))

    def one_input(data: bytes) -> None:
        recorder = StateRecorder()
        result = run_input(target, data, recorder)
        situations.reached(recorder.reached)
        if result.violations:
            situations.failed()
            raise AssertionError(result.violations[0].what)

    def mutator(data: bytes, bytes_max: int, seed: int) -> bytes:
        choices = SeedChoices(seed)
        if choices.below(4) == 0:
            mutated: bytes = atheris.Mutate(data, bytes_max)
            return mutated
        return mutate_input(data, bytes_max, choices)

    def crossover(left: bytes, right: bytes, bytes_max: int, seed: int) -> bytes:
        return cross_inputs(left, right, bytes_max, SeedChoices(seed))

    atheris.Setup(
        ["fuzz", *flags],
        one_input,
        custom_mutator=mutator,
        custom_crossover=crossover,
        internal_libfuzzer=True,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
