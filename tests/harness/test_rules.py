"""What a promise means for each kind of break: said for all that is reported, and nothing else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.rules import RAISED, RULES, rule_of

SOURCES = Path(__file__).parents[2] / "harness"

PLACES = {"note": 1, "broken": 2, "Problem": 1, "_note_wait": 2}
"""Which argument of each says the kind of break."""


def reported() -> Iterator[str]:
    """How every kind begins that the source reports; not those that are made up of other texts."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                at = PLACES.get(name)
                if at is not None and len(node.args) > at + 1:
                    yield from beginning(node.args[at])


def beginning(node: ast.expr) -> Iterator[str]:
    """The text that a literal begins with."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_everything_that_is_reported_has_a_rule() -> None:
    kinds = set(reported())
    assert len(kinds) > 70
    # What is made up of several texts has a rule for each whole one.
    begun = {kind for kind in kinds if any(rule.startswith(kind) for rule in RULES)}
    assert sorted(kind for kind in kinds - begun if not rule_of(kind)) == []


def test_every_rule_is_of_something_in_the_source() -> None:
    texts = {
        node.value
        for path in SOURCES.rglob("*.py")
        if path.name != "rules.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 3
    }
    lost = [
        kind
        for kind in RULES
        if not any(text.startswith(kind) or kind.endswith(text.strip(" ")) for text in texts)
    ]
    assert lost == []


@pytest.mark.parametrize(
    ("detail", "rule"),
    [
        ("span", RULES["span"]),
        ("spans cross", RULES["spans cross"]),
        ("free too early", RULES["free too early"]),
        ("free too early behind a settle", RULES["free too early behind a settle"]),
        ("wrong bytes on a rank in arena", RULES["wrong bytes on a rank"]),
        ("AssertionError in take", RULES["AssertionError in"]),
        ("KeyError in take", RAISED),
        ("arena race", ""),
    ],
)
def test_the_longest_beginning_says_the_rule(detail: str, rule: str) -> None:
    assert rule_of(detail) == rule
