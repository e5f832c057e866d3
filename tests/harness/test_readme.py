"""What the README shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.case import CASE_VERSION, Case
from harness.cli import main
from harness.generate import FAMILIES
from harness.loading import load_scenario
from harness.report.length import Length
from harness.report.text import render
from harness.runner import run_seed
from harness.shrinking import shrink_case
from harness.unikv_subject import UnikvSubject
from shrink import Budget
from tests.alloc.small_chain import DiaryDevice, Mark
from unikv import __version__
from unikv.build import storage_layout
from unikv.device.port import StorageLayout
from unikv.disagg.engine import Judgement, NoProof, Pages, Proof
from unikv.disagg.rounds import RoundReport
from unikv.plan import KVStoragePlan
from unikv.sizing import KVStorageSize
from unikv.storage import KVStorage
from unikv.trace.still_device import StillDevice

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


class Alone:
    """The link of a rank that has no other."""

    def min_reduce(self, values: list[int]) -> list[int]:
        """Its own values are the least."""
        return values


class Recorder:
    """A transfer engine that notes what it is asked to send, and never ends."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    def send(self, name: str, peer: str, run: int, pages: Pages) -> None:
        """Note it."""
        self.sent.append((name, peer))

    def receive(self, name: str, peer: str, pages: Pages) -> None:
        """No example receives."""

    def judge(self, name: str) -> Judgement:
        """Nothing has ended yet."""
        return Judgement.IN_PROGRESS

    def abort(self, name: str) -> Proof:
        """No example aborts."""
        return NoProof("this engine stops nothing")

    def fence_passed(self, fence: int) -> bool:
        """It has made no fence."""
        return False

    def quiet_epoch(self) -> int:
        """No epoch is over."""
        return 0

    def forget(self, name: str) -> None:
        """It remembers no transfer that could end."""


class Unmade(DiaryDevice):
    """A device of no memory, since what it would hold is gigabytes."""

    def __init__(self, layout: StorageLayout) -> None:
        super().__init__(layout._replace(total_bytes=0))

    def bytes_of(self, band: int, page: int) -> slice:
        """Nowhere."""
        return slice(0, 0)


def shown_report() -> str:
    """The report of the README, without its indentation and its replay command."""
    start = README.index("    ordering: ")
    end = README.index("    replay", start)
    lines = README[start:end].rstrip().splitlines()
    return "\n".join(line[4:] for line in lines)


def test_the_report_is_what_the_command_prints() -> None:
    scenario = load_scenario(ROOT / "scenarios" / "smoke.yaml")
    plant = "move-over-writer"
    found = (run_seed(scenario, "smoke", seed, 400, plant=plant) for seed in range(1, 51))
    result = next(result for result in found if result.violations)
    case = Case(
        version=CASE_VERSION,
        unikv=__version__,
        scenario="smoke",
        scenario_data=scenario,
        setup=result.setup,
        seed=result.seed,
        plant=plant,
        operations=result.trace,
        violation=result.violations[0],
    )
    small = shrink_case(case, Budget())
    length = Length.of(complete=small.complete)
    assert shown_report() in render(small.case, small.case.violation, "", length)
    assert f"/{result.violations[0].short_signature}/min.json" in README


def samples() -> list[str]:
    """Every piece of Python that is shown."""
    return [piece.partition("```")[0] for piece in README.split("```python\n")[1:]]


def commands() -> list[list[str]]:
    """Every line of the program that is shown, with names in place of what stands for one."""
    lines = re.findall(r"python -m harness((?: [^#`\n]+)?)", README)
    case = next((ROOT / "scenarios" / "regressions").glob("*.json"))
    known = {"CASE.json": str(case)}
    words = [[known.get(word, word) for word in shlex.split(line)] for line in lines]
    return [[str(case) if "..." in word else word for word in line] for line in words]


def targets() -> list[str]:
    """Every target of make that is shown."""
    return sorted(set(re.findall(r"(?:^    |`)make ([a-z]+)", README, flags=re.MULTILINE)))


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_is_one_that_the_program_takes(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    if words == ["--version"]:
        assert CliRunner().invoke(main, words).stdout == f"unikv {__version__}\n"
        return
    command = main.commands[words[0]]
    context = command.make_context(words[0], words[1:])
    assert "scenario" not in context.params or named_scenarios_exist(context.params["scenario"])


def named_scenarios_exist(named: object) -> bool:
    """Whether each is a file; none may be named."""
    paths = named if isinstance(named, tuple) else (named,)
    return all(path is None or Path(str(path)).is_file() for path in paths)


def test_enough_commands_are_found() -> None:
    assert {words[0] for words in commands()} >= {*main.commands, "--version"}


def test_every_option_of_a_comment_is_one() -> None:
    shown = set(re.findall(r"--[a-z]+", README))
    known = {o for c in main.commands.values() for p in c.params for o in p.opts} | {"--version"}
    assert shown <= known


@pytest.mark.parametrize("target", targets())
def test_a_target_of_make_is_one(target: str) -> None:
    rules = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:.* ## \w", rules, flags=re.MULTILINE)


def test_the_library_examples_run() -> None:
    first, second, _ = samples()
    names: dict[str, object] = {"event": Mark("end of step 1")}
    before, _, rest = first.partition("storage = build_kv_storage")
    exec(before, names)
    plan, size = names["plan"], names["size"]
    assert isinstance(plan, KVStoragePlan)
    assert isinstance(size, KVStorageSize)
    names["device"] = Unmade(storage_layout(plan, size))
    exec("storage = build_kv_storage" + rest, names)
    storage = names["storage"]
    assert isinstance(storage, KVStorage)
    assert storage.audit() == []
    assert storage.chain.owner.live == 0
    engine = Recorder()
    names.update(engine=engine, collective=Alone(), device=StillDevice())
    exec(second, names)
    storage, report = names["storage"], names["report"]
    assert isinstance(storage, KVStorage)
    assert isinstance(report, RoundReport)
    assert storage.audit() == []
    assert storage.host
    assert not storage.host.copies
    assert report.began == ("send t1 part 0",)
    assert engine.sent == [("t1", "decode0")]


def test_the_example_of_a_subject_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(samples()[2], {"MySubject": UnikvSubject})


def test_the_families_are_those_that_there_are() -> None:
    start = README.index("which families it supports")
    named = re.findall(r"`(\w+)`", README[start : README.index(")", start)])
    assert sorted(named) == sorted(FAMILIES)
