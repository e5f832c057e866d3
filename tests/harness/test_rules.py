"""What a promise means for each kind of break: said for all of them, and for none that is not."""

import ast
from pathlib import Path

from harness.rules import RULES, rule_of

SOURCES = Path(__file__).parents[2] / "harness"


def sentences() -> set[str]:
    """Every text in the program's source, pieces of a formatted one too, but for the rules."""
    return {
        node.value
        for path in SOURCES.rglob("*.py")
        if path.name != "rules.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_rule_is_of_something_that_is_reported() -> None:
    texts = sentences()
    begins = {text.split(" in ")[0] for text in texts} | texts
    lost = [
        kind
        for kind in RULES
        if not any(text.startswith(kind) or kind.endswith(text.strip()) for text in begins if text)
    ]
    assert lost == []


def test_the_longest_beginning_says_the_rule() -> None:
    assert rule_of("span") == RULES["span"]
    assert rule_of("spans cross") == RULES["spans cross"]
    assert rule_of("wrong bytes on a rank in arena") == RULES["wrong bytes on a rank"]
    assert rule_of("arena race") == ""
