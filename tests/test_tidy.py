"""Each tidy rule sees a violation planted in a small tree, and stays silent on a clean one."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from ci import tidy
from ci.placement import chance, environment, import_direction, printing, torch_place
from ci.project import Finding, Project, read_project

Rule = Callable[[Project], list[Finding]]
Tree = dict[str, str]

# Written in two pieces, so that this file does not break the rules it tests.
LATER = "TO" + "DO"
LOOK_AWAY = "# type: " + "ignore"


def planted(root: Path, tree: Tree) -> Project:
    """The project of the files in `tree`."""
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return read_project(root)


def lines(findings: list[Finding]) -> list[tuple[str, int]]:
    return [(finding.path, finding.line) for finding in findings]


# Rule, a tree that breaks it, the place it must name, and a tree like it that is in order.
CASES: list[tuple[Rule, Tree, tuple[str, int], Tree]] = [
    (
        tidy.syntax,
        {"unikv/a.py": "x = 1\ndef f(:\n"},
        ("unikv/a.py", 2),
        {"unikv/a.py": "def f(): ...\n"},
    ),
    (
        tidy.file_budget,
        {"unikv/a.py": "x = 1\n" * 401},
        ("unikv/a.py", 401),
        {"unikv/a.py": "x = 1\n" * 400, "tests/test_a.py": "x = 1\n" * 600},
    ),
    (
        tidy.file_budget,
        {"tests/test_a.py": "x = 1\n" * 601},
        ("tests/test_a.py", 601),
        {"benchmarks/a.py": "x = 1\n" * 400},
    ),
    (
        tidy.function_budget,
        {"unikv/a.py": "class A:\n    def f(self):\n" + "        x = 1\n" * 70},
        ("unikv/a.py", 2),
        {"unikv/a.py": "@cache\ndef f():\n" + "    x = 1\n" * 69},
    ),
    (
        import_direction,
        {"unikv/a.py": "def f():\n    from harness.world import World\n"},
        ("unikv/a.py", 2),
        {"unikv/a.py": "import harnessed\n", "harness/a.py": "import unikv.a, shrink\n"},
    ),
    (
        import_direction,
        {"shrink/a.py": "import unikv.alloc\n"},
        ("shrink/a.py", 1),
        {"shrink/a.py": "import shrink.passes\nfrom .passes import delete\n"},
    ),
    (
        import_direction,
        {"harness/sweep/a.py": "from ci import tidy\n"},
        ("harness/sweep/a.py", 1),
        {"ci/a.py": "import harness.cli\n", "tests/test_a.py": "import ci.tidy\n"},
    ),
    (
        torch_place,
        {"unikv/device/port.py": "x = 1\nimport torch.cuda\n"},
        ("unikv/device/port.py", 2),
        {
            "unikv/device/torch_device.py": "import torch\n",
            "unikv/device/kernels/move.py": "import triton.language as tl\n",
            "unikv/layout/views.py": "from torch import Tensor\n",
            "harness/device/cuda.py": "import torch\n",
            "unikv/device/port.py": "import torchless\n",
        },
    ),
    (
        printing,
        {"harness/runner.py": "def f():\n    print('x')\n"},
        ("harness/runner.py", 2),
        {
            "harness/cli.py": "print('x')\n",
            "ci/a.py": "print('x')\n",
            "benchmarks/a.py": "print('x')\n",
            "harness/runner.py": "console.print('x')\n",
        },
    ),
    (
        tidy.unfinished,
        {"unikv/a.py": f"x = 1  # {LATER}: y\n"},
        ("unikv/a.py", 1),
        {"unikv/a.py": f"# Neither {LATER}S nor mas{LATER} is the word.\n"},
    ),
    (
        tidy.suppression,
        {"tests/test_a.py": f"x = 1\ny = x.z  {LOOK_AWAY}[attr-defined]\n"},
        ("tests/test_a.py", 2),
        {"tests/test_a.py": "# The type says which one to ignore.\n"},
    ),
    (
        tidy.suppression,
        {"unikv/a.py": "import os  # no" + "qa: F401\n"},
        ("unikv/a.py", 1),
        {"unikv/a.py": "import os\n"},
    ),
    (
        tidy.positional_flag,
        {"unikv/a.py": "class A:\n    def f(self, x: int, eager: bool = False): ...\n"},
        ("unikv/a.py", 2),
        {"unikv/a.py": "def f(live: Sequence[bool], *, eager: bool) -> bool: ...\n"},
    ),
    (
        tidy.positional_flag,
        {"harness/a.py": "async def f(eager: 'bool | None', /): ...\n"},
        ("harness/a.py", 1),
        {"tests/test_a.py": "def test_f(eager: bool): ...\n"},
    ),
    (
        tidy.positional_flag,
        {"harness/a.py": "def f(eager: bool | None): ...\n"},
        ("harness/a.py", 1),
        {"harness/a.py": "def f(eager: int | None): ...\n"},
    ),
    (
        tidy.positional_flag,
        {"harness/a.py": "def f(eager: None | bool): ...\n"},
        ("harness/a.py", 1),
        {"harness/a.py": "def f(eager: 'boolean | None'): ...\n"},
    ),
    (
        chance,
        {"unikv/a.py": "from time import monotonic\n"},
        ("unikv/a.py", 1),
        {
            "harness/choices.py": "import random\n",
            "harness/cli.py": "import time\n",
            "harness/sweep/watchdog.py": "import time\n",
            "harness/runner.py": "from harness.device import time\nx = time.start + self.random\n",
            "tests/test_a.py": "import random\n",
        },
    ),
    (
        chance,
        {"harness/sweep/a.py": "import random\n"},
        ("harness/sweep/a.py", 1),
        {"harness/sweep/a.py": "import datetime\n"},
    ),
    (
        chance,
        {"harness/a.py": "import numpy as np\nx = np.random.default_rng()\n"},
        ("harness/a.py", 2),
        {"harness/a.py": "import numpy as np\nx = np.zeros(3)\n"},
    ),
    (
        environment,
        {"unikv/a.py": "import os\nx = os.environ['X']\n"},
        ("unikv/a.py", 2),
        {
            "unikv/alloc/invariants.py": "import os\nx = os.environ.get('X')\n",
            "harness/cli.py": "from os import environ\n",
            "harness/a.py": "import os\nx = os.cpu_count()\n",
        },
    ),
    (
        environment,
        {"harness/a.py": "from os import getenv\n"},
        ("harness/a.py", 1),
        {"tests/test_a.py": "from os import getenv\n"},
    ),
    (
        tidy.docstring,
        {"unikv/a.py": "# A comment is not one.\nx = 1\n"},
        ("unikv/a.py", 1),
        {"unikv/a.py": '"""What it knows."""\n'},
    ),
    (
        tidy.swallowed_error,
        {"unikv/a.py": "try:\n    f()\nexcept:\n    g()\n"},
        ("unikv/a.py", 3),
        {"unikv/a.py": "try:\n    f()\nexcept KeyError as error:\n    raise A from error\n"},
    ),
    (
        tidy.swallowed_error,
        {"unikv/a.py": "try:\n    f()\nexcept (KeyError, Exception):\n    g()\n"},
        ("unikv/a.py", 3),
        {"unikv/disagg/engine_calls.py": "try:\n    f()\nexcept Exception:\n    g()\n"},
    ),
    (
        tidy.swallowed_error,
        {"unikv/a.py": "try:\n    f()\nexcept KeyError:\n    pass\n"},
        ("unikv/a.py", 3),
        {"unikv/a.py": "try:\n    f()\nexcept KeyError:\n    g()\n    pass\n"},
    ),
    (
        tidy.swallowed_error,
        {"unikv/a.py": "with contextlib.suppress(Exception):\n    f()\n"},
        ("unikv/a.py", 1),
        {"unikv/a.py": "raise ExceptionGroup('two', errors)\n"},
    ),
    (
        tidy.vague_name,
        {"harness/utils.py": "x = 1\n"},
        ("harness/utils.py", 1),
        {"harness/page_text.py": "x = 1\n"},
    ),
    (
        tidy.unproven_check,
        {
            "harness/check/ledger.py": "x = 1\n",
            "harness/faults/catalog.py": "# Nothing here upsets the ledger.\n",
        },
        ("harness/check/ledger.py", 1),
        {
            "harness/check/__init__.py": "x = 1\n",
            "harness/check/ledger.py": "x = 1\n",
            "harness/check/idle.py": "x = 1\n",
            "harness/faults/catalog.py": "caught_by = ('ledger', Check.IDLE)\n",
        },
    ),
    (
        tidy.scenario_why,
        {"scenarios/models/a.yaml": "why: '  '\nbands: 2\n"},
        ("scenarios/models/a.yaml", 1),
        {"scenarios/models/a.yaml": "why: a page is reused one step early\n"},
    ),
    (
        tidy.scenario_why,
        {"scenarios/a.yaml": "why: [\n"},
        ("scenarios/a.yaml", 1),
        {"unikv/a.py": "x = 1\n"},
    ),
    (
        tidy.dead_module,
        {"unikv/alloc/span.py": "import unikv.alloc.span\n", "tests/test_a.py": "import unikv\n"},
        ("unikv/alloc/span.py", 1),
        {
            "unikv/__init__.py": "from .alloc import span\n",
            "unikv/__main__.py": "from unikv.plan import plan\n",
            "unikv/alloc/span.py": "from ..ids.unit_ids import UnitIds\n",
            "unikv/ids/unit_ids.py": "x = 1\n",
            "unikv/plan.py": "LAZY = 'harness.device.cuda'\n",
            "harness/device/cuda.py": "x = 1\n",
            "ci/nightly.py": "x = 1\n",
        },
    ),
]
NAMES = [f"{rule.__name__}-{number}" for number, (rule, *_) in enumerate(CASES)]


@pytest.mark.parametrize(("rule", "tree", "place", "clean"), CASES, ids=NAMES)
def test_a_rule_names_the_place_of_a_planted_violation(
    tmp_path: Path, rule: Rule, tree: Tree, place: tuple[str, int], clean: Tree
) -> None:
    assert lines(rule(planted(tmp_path, tree))) == [place]


@pytest.mark.parametrize(("rule", "tree", "place", "clean"), CASES, ids=NAMES)
def test_a_rule_is_silent_on_a_clean_tree(
    tmp_path: Path, rule: Rule, tree: Tree, place: tuple[str, int], clean: Tree
) -> None:
    assert rule(planted(tmp_path, clean)) == []


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule for rule, *_ in CASES} == set(tidy.RULES)


def test_a_finding_carries_the_name_of_its_rule(tmp_path: Path) -> None:
    for number, (rule, tree, *_) in enumerate(CASES):
        findings = rule(planted(tmp_path / str(number), tree))
        assert [finding.rule for finding in findings] == [rule.__name__]


def test_checks_without_a_fault_are_silent_until_there_is_a_catalog(tmp_path: Path) -> None:
    project = planted(tmp_path, {"harness/check/ledger.py": "x = 1\n"})
    assert tidy.unproven_check(project) == []


def test_the_report_locates_each_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(tmp_path, {"ci/a.py": '"""Doc."""\n', "ci/b.py": '"""Doc."""\nimport tests.a\n'})
    assert tidy.main(tmp_path) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("ci/b.py:2: import_direction: ci imports tests")
    assert last == f"tidy: 2 files read, {len(tidy.RULES)} rules, 1 findings"


def test_a_tidy_tree_exits_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted(tmp_path, {"ci/a.py": '"""Doc."""\n'})
    assert tidy.main(tmp_path) == 0
    assert capsys.readouterr().out.startswith("tidy: 1 files read")


def test_a_tree_with_nothing_to_read_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tidy.main(tmp_path) == 1
    assert capsys.readouterr().out.startswith("tidy: 0 files read")
