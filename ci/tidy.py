"""The rules of this code base that a machine can judge, one function each.

A rule maps the parsed project to its findings and to nothing else, so every rule is tested on a
tree of two files.  Format, lint and types belong to other tools; only what they cannot say is
here.  How a file is found and parsed is not known here.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from ci.placement import (
    PRODUCT,
    chance,
    environment,
    import_direction,
    printing,
    torch_place,
)
from ci.project import Finding, Project, read_project

FILE_LINES, TEST_FILE_LINES, FUNCTION_LINES = 400, 600, 70

BROAD_ERRORS = {"Exception", "BaseException"}
# Where code of others is called after the last moment at which its error could stop anything.
BROAD_PLACES = {"unikv/disagg/engine_calls.py"}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}
# Files of harness/check that support the checks and promise nothing themselves.
NOT_A_CHECK = {"__init__", "base", "layout_search", "noted", "violation"}

# The brackets keep the patterns from matching their own text.
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E|XX[X])\b")
SUPPRESSION = re.compile(r"#\s*(type:\s*ignor[e]|(ruff:\s*)?noq[a]|mypy:.*(ignor[e]|disabl[e]))")


def syntax(project: Project) -> list[Finding]:
    """Every file parses; no other rule sees one that does not."""
    return [Finding(file.path, file.line, "syntax", file.message) for file in project.broken]


def file_budget(project: Project) -> list[Finding]:
    """A file that outgrows its budget hides a noun that deserves a file."""
    findings = []
    for file in project.files:
        lines = len(file.text.splitlines())
        budget = TEST_FILE_LINES if file.path.startswith("tests/") else FILE_LINES
        if lines > budget:
            what = f"{lines} lines, at most {budget}; which noun in it deserves its own file?"
            findings.append(Finding(file.path, budget + 1, "file_budget", what))
    return findings


def function_budget(project: Project) -> list[Finding]:
    """Counts from `def` to the last line: the docstring, but not the decorators."""
    findings = []
    for file, node in project.functions():
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            what = f"{node.name} has {lines} lines, at most {FUNCTION_LINES}; split it"
            findings.append(Finding(file.path, node.lineno, "function_budget", what))
    return findings


def _matching(project: Project, rule: str, pattern: re.Pattern[str], advice: str) -> list[Finding]:
    return [
        Finding(file.path, number, rule, f"{found[0]!r}; {advice}")
        for file in project.files
        for number, line in enumerate(file.text.splitlines(), start=1)
        if (found := pattern.search(line))
    ]


def unfinished(project: Project) -> list[Finding]:
    """A promise to finish later is not code."""
    return _matching(project, "unfinished", UNFINISHED, "finish it, or leave it out")


def suppression(project: Project) -> list[Finding]:
    """A tool that was told to look away proves nothing."""
    return _matching(project, "suppression", SUPPRESSION, "repair what the tool reports")


def _is_flag(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Name(id="bool"):
            return True
        case ast.Constant(value=str(text)):
            return "bool" in re.split(r"[\s|]+", text)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_flag(left) or _is_flag(right)
    return False


def positional_flag(project: Project) -> list[Finding]:
    """A bare `True` at a call says nothing; the arguments of a test are given by name anyway."""
    return [
        Finding(
            file.path,
            argument.lineno,
            "positional_flag",
            f"{node.name} takes the bool {argument.arg!r} by position; put it after `*`",
        )
        for file, node in project.functions()
        if not (file.path.startswith("tests/") and node.name.startswith("test_"))
        for argument in (*node.args.posonlyargs, *node.args.args)
        if _is_flag(argument.annotation)
    ]


def docstring(project: Project) -> list[Finding]:
    """Every module says what it knows."""
    return [
        Finding(file.path, 1, "docstring", "the module has none; say its one insight")
        for file in project.files
        if not ast.get_docstring(file.tree)
    ]


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def swallowed_error(project: Project) -> list[Finding]:
    """An error is caught by its own name, and something is done about it."""
    findings = []
    for file in project.files:
        for node in file.nodes:
            match node:
                case ast.ExceptHandler(type=None):
                    what = "catches everything; name the error that is expected"
                case ast.ExceptHandler(type=ast.expr() as kind) if (
                    _names([kind]) & BROAD_ERRORS and file.path not in BROAD_PLACES
                ):
                    what = "catches everything; name the error that is expected"
                case ast.ExceptHandler(body=[ast.Pass()]):
                    what = "drops the error; act on it, or let it through"
                case ast.Call(func=function, args=kinds) if _names(kinds) & BROAD_ERRORS and (
                    ast.unparse(function).endswith("suppress")
                ):
                    what = "drops every error; name the one that is expected, and act on it"
                case _:
                    continue
            findings.append(Finding(file.path, node.lineno, "swallowed_error", what))
    return findings


def vague_name(project: Project) -> list[Finding]:
    """A reader finds a file by guessing its name."""
    return [
        Finding(file.path, 1, "vague_name", "could hold anything; name it after what it holds")
        for file in project.files
        if VAGUE_NAMES & set(file.parts)
    ]


def unproven_check(project: Project) -> list[Finding]:
    """A check that no planted fault names has never been seen to fail."""
    faults = "\n".join(f.text for f in project.files if f.path.startswith("harness/faults/"))
    checks = [f for f in project.files if f.path.startswith("harness/check/")]
    return [
        Finding(file.path, 1, "unproven_check", f"no fault names {file.parts[-1]!r}; plant one")
        for file in checks
        if faults
        and file.parts[-1] not in NOT_A_CHECK
        # Quoted, or an attribute; in prose the same word would prove nothing.
        and not re.search(rf"""["'.]{file.parts[-1]}\b""", faults, re.IGNORECASE)
    ]


def scenario_why(project: Project) -> list[Finding]:
    """A scenario says which hazard it provokes."""
    findings = []
    for scenario in project.scenarios:
        try:
            content = yaml.safe_load(scenario.text)
        except yaml.YAMLError as error:
            what = f"is not YAML: {' '.join(str(error).split())}"
            findings.append(Finding(scenario.path, 1, "scenario_why", what))
            continue
        why = content.get("why") if isinstance(content, dict) else None
        if not (isinstance(why, str) and why.strip()):
            what = "has no `why:`; name the hazard and the check that would fire"
            findings.append(Finding(scenario.path, 1, "scenario_why", what))
    return findings


def dead_module(project: Project) -> list[Finding]:
    """A module that nobody imports is not tested either."""
    wanted: dict[str, set[str]] = {}
    for file in project.files:
        for _, name in file.imports():
            pieces = name.split(".")
            for length in range(1, len(pieces) + 1):
                wanted.setdefault(".".join(pieces[:length]), set()).add(file.path)
        for node in file.nodes:
            # A lazy import names the module in a string.
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                wanted.setdefault(node.value, set()).add(file.path)
    return [
        Finding(file.path, 1, "dead_module", "no file imports it; use it or delete it")
        for file in project.files
        if file.path.startswith(PRODUCT) and file.parts[-1] not in {"__init__", "__main__"}
        if not wanted.get(".".join(file.parts), set()) - {file.path}
    ]


RULES: tuple[Callable[[Project], list[Finding]], ...] = (
    syntax,
    file_budget,
    function_budget,
    import_direction,
    torch_place,
    chance,
    environment,
    printing,
    unfinished,
    suppression,
    positional_flag,
    docstring,
    swallowed_error,
    vague_name,
    unproven_check,
    scenario_why,
    dead_module,
)


def judge(project: Project) -> list[Finding]:
    """Every finding of every rule, once each, by path and line."""
    return sorted({finding for rule in RULES for finding in rule(project)})


def main(root: Path) -> int:
    """Print what is untidy under `root`; exit status 1 if anything is, or if nothing was read."""
    project = read_project(root)
    findings = judge(project)
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.rule}: {finding.what}")
    read = len(project.files) + len(project.broken)
    print(f"tidy: {read} files read, {len(RULES)} rules, {len(findings)} findings")
    return 1 if findings or not read else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]))
