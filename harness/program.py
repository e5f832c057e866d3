"""Where the program itself lies: the code, and the scenarios that come with it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
DEFAULT_SCENARIOS = ROOT / "scenarios"
