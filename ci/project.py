"""The project as text and syntax trees, and a finding in it: what rules read and give back.

A file is never imported, only parsed: a package that is broken, or needs a GPU to be imported,
is read like any other.  What is allowed, and where, is not known here.
"""

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("unikv", "harness", "shrink", "ci", "tests", "benchmarks")


class Finding(NamedTuple):
    """One place that breaks one rule; `line` counts from 1."""

    path: str
    line: int
    rule: str
    what: str


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One parsed file; `nodes` is every node of `tree`, each once."""

    path: str  # relative to the root, with forward slashes
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """Pieces of the module's dotted name; those of `a/__init__.py` are `a`, `__init__`."""
        return tuple(self.path.removesuffix(".py").split("/"))

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full dotted name of each import, at any depth of the file.

        `from a import b` gives `a.b`, whatever `b` is; a relative import is resolved.
        """
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = self.parts[: -node.level] if node.level else ()
                base = (*above, node.module) if node.module else above
                yield from ((node.lineno, ".".join((*base, alias.name))) for alias in node.names)

    def mentions(self, names: Set[str]) -> Iterator[tuple[int, str]]:
        """Line and name where one of `names`, or something inside it, is imported or written.

        Written means an expression `a.b` that is one of `names` as a whole, since the `time` of
        `time.a` need not be the module.
        """
        for line, imported in self.imports():
            pieces = imported.split(".")
            found = {pieces[0], ".".join(pieces[:2])} & names
            yield from ((line, name) for name in sorted(found))
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                written = f"{node.value.id}.{node.attr}"
                if written in names:
                    yield node.lineno, written


@dataclass(frozen=True, slots=True)
class Scenario:
    """Text of one scenario file; `path` is relative to the root."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that does not parse, with the parser's own words; `line` counts from 1."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Project:
    """Every Python file of `PACKAGES` and every scenario under one root, sorted by path."""

    files: tuple[SourceFile, ...]
    broken: tuple[BrokenFile, ...]
    scenarios: tuple[Scenario, ...]

    def functions(self) -> Iterator[tuple[SourceFile, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Every function and method, nested ones too, with the file it is in."""
        for file in self.files:
            for node in file.nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield file, node


def read_project(root: Path) -> Project:
    """Read what is under `root`; a package or a scenario folder that is not there is empty.

    Raises:
        OSError, UnicodeDecodeError: if a file cannot be read as UTF-8 text.
    """
    files, broken = [], []
    for path in sorted(path for name in PACKAGES for path in (root / name).rglob("*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            broken.append(BrokenFile(name, error.lineno or 1, error.msg))
        else:
            files.append(SourceFile(name, text, tree, tuple(ast.walk(tree))))
    scenarios = [
        Scenario(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted((root / "scenarios").rglob("*.yaml"))
    ]
    return Project(tuple(files), tuple(broken), tuple(scenarios))
