"""The doctor: what it sees, and that it can tell runs that do not repeat."""

import os
import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ci.placement import PRODUCT
from ci.project import read_project
from harness.cli import main
from harness.doctor import Determinism, Diagnosis, Part, diagnosis_lines, examine
from harness.packages import NEEDED, OPTIONAL
from harness.sweep.verdict import Exit

ROOT = Path(__file__).parents[2]

DEPENDS_ON_HASHES = """
import harness.choices


class Hashed(harness.choices.SeedChoices):
    def __init__(self, seed):
        super().__init__(seed + hash("a word"))


harness.choices.SeedChoices = Hashed
"""


DIFFERS_EACH_TIME = """
import itertools
import harness.choices

numbers = itertools.count()


class Counted(harness.choices.SeedChoices):
    def __init__(self, seed):
        super().__init__(seed + next(numbers))


harness.choices.SeedChoices = Counted
"""

SAYS_AND_BREAKS_A_PROMISE = """
import os, sys
sys.stdout.write('{"digest": "%s"}\\n' % digest)
sys.stdout.flush()
os._exit(1)
"""


REPEATS = Determinism(("aa", "aa"), True, "")
CLICK = Part("click", "8.1", "everything")


def diagnosis(*, determinism: Determinism = REPEATS, click: Part = CLICK) -> Diagnosis:
    """What the doctor says of a healthy machine but for what is given."""
    optional = (Part("atheris", None, "fuzz"), Part("pytest", "9.0", "tests"))
    return Diagnosis("CPython 3.11", "Linux", (click,), optional, ("H200",), "CUDA", determinism)


def environment_with(folder: Path, code: str) -> dict[str, str]:
    """An environment in which every interpreter runs `code` first."""
    (folder / "sitecustomize.py").write_text(code)
    before = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT), before])}


def names_of(requirements: list[str]) -> set[str]:
    """Packages without versions and markers."""
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}


def test_the_doctor_knows_every_package_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set().union(*map(names_of, project["optional-dependencies"].values()))
    assert set(NEEDED) == names_of(project["dependencies"])
    assert set(OPTIONAL) <= extras


def imported_by_the_product() -> set[str]:
    """Names of everything that is imported from elsewhere."""
    files = (file for file in read_project(ROOT).files if file.path.startswith(PRODUCT))
    return {name.partition(".")[0] for file in files for _, name in file.imports()}


def test_every_package_that_the_doctor_names_is_imported_somewhere() -> None:
    # Torch is imported in a process of its own.
    assert {*NEEDED.values(), *OPTIONAL} - {"torch"} <= imported_by_the_product()


def test_devices_are_named() -> None:
    assert "devices     modeled, where everything runs; CUDA: H200 (CUDA)" in diagnosis_lines(
        diagnosis()
    )


A_TORCH = """
class cuda:
    device_count = lambda: 2
    get_device_name = lambda at: f"GPU {at}"


class version:
    cuda = "13.0"
"""


@pytest.mark.parametrize(
    ("code", "devices", "note"),
    [
        (A_TORCH, ("GPU 0", "GPU 1"), "torch with CUDA 13.0"),
        ("raise ImportError('libcuda is gone')", (), "torch cannot be imported: exit status 1"),
    ],
)
def test_torch_is_asked_for_devices(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    devices: tuple[str, ...],
    note: str,
) -> None:
    (tmp_path / "torch.py").write_text(code)
    monkeypatch.setattr("harness.doctor.installed_version", lambda package: "2.13")
    monkeypatch.setattr("harness.doctor._determinism", lambda environment: REPEATS)
    seen = examine({**os.environ, "PYTHONPATH": str(tmp_path)})
    assert seen.devices == devices
    assert seen.devices_note.startswith(note)


def test_a_healthy_machine_is_clean() -> None:
    assert diagnosis().status is Exit.CLEAN


def test_what_is_absent_is_said_with_what_it_switches_off() -> None:
    assert "absent      atheris; without it no fuzz" in diagnosis_lines(diagnosis())


def test_a_package_that_everything_needs_is_an_error() -> None:
    lacking = diagnosis(click=Part("click", None, "everything"))
    assert lacking.status is Exit.USAGE
    assert "needed      click MISSING" in diagnosis_lines(lacking)


def test_runs_that_differ_are_not_deterministic() -> None:
    differing = diagnosis(determinism=Determinism(("aa", "bb"), True, ""))
    assert differing.status is Exit.NOT_DETERMINISTIC
    assert "repeats     NO: one seed gave aa and bb" in diagnosis_lines(differing)


def test_one_process_that_gives_two_digests_is_not_deterministic() -> None:
    unsteady = diagnosis(determinism=Determinism(("aa", "aa"), False, ""))
    assert unsteady.status is Exit.NOT_DETERMINISTIC
    *_, said, command = diagnosis_lines(unsteady)
    assert said == "repeats     NO: one seed gave two digests in one process"
    assert command.startswith("to see it   python -m harness replay --scenario ")


def test_a_self_check_that_did_not_run_proves_nothing() -> None:
    silent = diagnosis(determinism=Determinism((), True, "no answer within 120 s"))
    assert silent.status is Exit.INTERNAL
    assert "repeats     unknown: no answer within 120 s" in diagnosis_lines(silent)


@pytest.mark.slow
def test_the_command_looks_at_this_machine() -> None:
    result = CliRunner().invoke(main, ["doctor", "--json"])
    record = msgspec.json.decode(result.stdout.splitlines()[-1])
    assert result.exit_code == 0
    assert (record["deterministic"], record["trouble"]) == (True, "")
    assert record["optional"].keys() == OPTIONAL.keys()


@pytest.mark.slow
def test_a_run_that_depends_on_hash_seeds_is_noticed(tmp_path: Path) -> None:
    seen = examine(environment_with(tmp_path, DEPENDS_ON_HASHES))
    assert len(set(seen.determinism.digests)) == 2
    assert seen.status is Exit.NOT_DETERMINISTIC


@pytest.mark.slow
def test_a_process_that_dies_is_quoted(tmp_path: Path) -> None:
    code = "import os, sys\nsys.stderr.write('no memory left\\n')\nsys.stderr.flush()\nos._exit(9)"
    seen = examine(environment_with(tmp_path, code))
    assert seen.determinism.trouble == "exit status 9: no memory left"


@pytest.mark.slow
def test_a_run_that_differs_each_time_is_noticed(tmp_path: Path) -> None:
    seen = examine(environment_with(tmp_path, DIFFERS_EACH_TIME))
    assert (seen.determinism.trouble, seen.determinism.steady) == ("", False)
    assert seen.status is Exit.NOT_DETERMINISTIC


@pytest.mark.parametrize(("digest", "status"), [("'aa'", 0), ("str(hash('a word'))", 6)])
def test_a_broken_promise_is_an_answer_too(tmp_path: Path, digest: str, status: int) -> None:
    code = f"digest = {digest}\n{SAYS_AND_BREAKS_A_PROMISE}"
    seen = examine(environment_with(tmp_path, code))
    assert (seen.determinism.trouble, seen.status) == ("", status)
