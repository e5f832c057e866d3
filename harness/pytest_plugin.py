"""pytest: seeds of a scenario as one test, with the failing case in the test's report.

    import pytest


    @pytest.mark.unikv_seeds(50)
    def test_my_allocator_keeps_its_promises(unikv_run):
        totals = unikv_run("scenarios/smoke.yaml", subject=MySubject)
        assert totals.probes["take_refused"]

`unikv_run` is a `harness.seed_runs.SeedRuns`.  pytest loads this module at every start, so what
runs seeds is imported when a test asks for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.seed_runs import SeedRuns

SEEDS = 20
"""Seeds of a test that says nothing else."""

SEEDS_MAX = 1_000_000
MARKER = "unikv_seeds"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("unikv", "seeds of a KV-cache allocator")
    group.addoption(
        "--unikv-seeds",
        type=int,
        metavar="N",
        help="run N seeds in every test that uses unikv_run, whatever its marker says",
    )
    group.addoption(
        "--unikv-artifacts",
        default="artifacts",
        metavar="DIR",
        help="where failing cases go (default: artifacts)",
    )
    group.addoption(
        "--unikv-replay",
        metavar="CASE",
        help="run this case in every test that uses unikv_run, instead of seeds",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse a number of seeds that makes no sense."""
    config.addinivalue_line(
        "markers", f"{MARKER}(count): how many seeds unikv_run runs, from 1 on (default: {SEEDS})"
    )
    asked = config.getoption("--unikv-seeds")
    if asked is not None:
        _checked("--unikv-seeds", asked)


@pytest.fixture
def unikv_run(request: pytest.FixtureRequest) -> SeedRuns:
    """Runs seeds of a scenario and fails the test at the first broken promise."""
    from harness.seed_runs import SeedRuns

    config = request.config
    stored = config.getoption("--unikv-replay")
    return SeedRuns(
        seeds=config.getoption("--unikv-seeds") or _marked(request.node),
        artifacts=Path(config.getoption("--unikv-artifacts")),
        stored=None if stored is None else Path(stored),
        test=request.node.nodeid,
    )


def _marked(node: pytest.Item) -> int:
    """What the test's marker says."""
    marker = node.get_closest_marker(MARKER)
    if marker is None:
        return SEEDS
    count = marker.args[0] if len(marker.args) == 1 and not marker.kwargs else None
    return _checked(f"{node.nodeid}: @pytest.mark.{MARKER}", count)


def _checked(place: str, count: object) -> int:
    if isinstance(count, int) and 1 <= count <= SEEDS_MAX:
        return count
    raise pytest.UsageError(f"{place}: {count!r}: want one whole number from 1 to {SEEDS_MAX}")
