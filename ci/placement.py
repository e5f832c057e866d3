"""Rules on who may use what: imports, torch, chance and clocks, the environment, output.

Each is a list of names and a list of places, so a new boundary is two constants and a line.  Why
a boundary stands where it does is in ARCHITECTURE.md; here it only holds.
"""

import ast
from collections.abc import Set

from ci.project import Finding, Project

# What each package must not know.
FORBIDDEN_IMPORTS = {
    "unikv": {"harness", "shrink", "ci", "tests", "benchmarks"},
    "shrink": {"unikv", "harness", "ci", "tests", "benchmarks"},
    "harness": {"ci", "tests", "benchmarks"},
    "ci": {"tests"},
}
# Places are prefixes of paths.
PRODUCT = ("unikv/", "harness/", "shrink/")
TORCH_PLACES = (
    "unikv/device/torch_device.py",
    "unikv/device/kernels/",
    "unikv/layout/",
    "harness/device/cuda.py",
)
PRINT_PLACES = ("harness/cli.py", "ci/", "benchmarks/")
CHANCE_PLACES = ("harness/choices.py", "harness/cli.py")
CLOCK_PLACES = (*CHANCE_PLACES, "harness/sweep/")
ENVIRONMENT_PLACES = ("harness/cli.py", "unikv/alloc/invariants.py")

CHANCE = {"random", "secrets", "os.urandom", "np.random", "numpy.random"}
CLOCK = {"time", "datetime"}
ENVIRONMENT = {"os.environ", "os.environb", "os.getenv"}


def import_direction(project: Project) -> list[Finding]:
    """unikv <- harness <- ci, tests; shrink knows nobody."""
    findings = []
    for file in project.files:
        package = file.parts[0]
        for line, name in file.mentions(FORBIDDEN_IMPORTS.get(package, set())):
            what = f"{package} imports {name}, which it must not know; turn the dependency round"
            findings.append(Finding(file.path, line, "import_direction", what))
    return findings


def _misplaced(
    project: Project, rule: str, names: Set[str], scope: tuple[str, ...], allowed: tuple[str, ...]
) -> list[Finding]:
    return [
        Finding(file.path, line, rule, f"uses {name}, allowed only in {', '.join(allowed)}")
        for file in project.files
        if file.path.startswith(scope) and not file.path.startswith(allowed)
        for line, name in file.mentions(names)
    ]


def torch_place(project: Project) -> list[Finding]:
    """The light install has no torch, so few files may ask for it."""
    return _misplaced(project, "torch_place", {"torch", "triton"}, PRODUCT, TORCH_PLACES)


def chance(project: Project) -> list[Finding]:
    """A run is a function of its seed: one source of chance, and no clock in a decision."""
    scope = ("unikv/", "harness/")
    return [
        *_misplaced(project, "chance", CHANCE, scope, CHANCE_PLACES),
        *_misplaced(project, "chance", CLOCK, scope, CLOCK_PLACES),
    ]


def environment(project: Project) -> list[Finding]:
    """What the environment decides is in no trace."""
    return _misplaced(project, "environment", ENVIRONMENT, PRODUCT, ENVIRONMENT_PLACES)


def printing(project: Project) -> list[Finding]:
    """Output has one door, so that `--json` can shut it."""
    return [
        Finding(file.path, node.lineno, "printing", "calls print; return the text to harness.cli")
        for file in project.files
        if not file.path.startswith(PRINT_PLACES)
        for node in file.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
