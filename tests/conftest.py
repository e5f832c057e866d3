"""How every test runs: a property draws the same examples on every machine and at every run.

A test that needs a device or a while says so with a marker and is skipped unless it is asked for,
so that a plain run stays quick and a skip says how to do better.
"""

from collections.abc import Mapping

import pytest
from hypothesis import settings

settings.register_profile("unikv", derandomize=True, database=None, deadline=None)
settings.load_profile("unikv")

ASK_FIRST: Mapping[str, str] = {
    "gpu": "needs a CUDA device; where there is one, run it with: pytest -m gpu",
    "slow": "takes more than a quarter of a second; run it with: pytest -m slow",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what the marker expression does not ask for."""
    asked = str(config.getoption("markexpr"))
    for item in items:
        for marker, reason in ASK_FIRST.items():
            if item.get_closest_marker(marker) and marker not in asked:
                item.add_marker(pytest.mark.skip(reason=reason))
