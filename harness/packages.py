"""Packages that others wrote: what is needed, what may be absent, and what that switches off.

The insight: what says that a package is missing must not need one, so nothing but the standard
library is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

NEEDED: Mapping[str, str] = {
    "click": "click",
    "jinja2": "jinja2",
    "msgspec": "msgspec",
    "pyyaml": "yaml",
    "rich": "rich",
}
"""Packages of the light install, each with the module that it brings."""

OPTIONAL: Mapping[str, str] = {
    "hypothesis": "harness.fuzz.hypothesis_machine: state machines in your own tests",
    "pytest": "harness.pytest_plugin: seeds in your own tests",
    "torch": "names of CUDA devices, below; the modeled device needs none",
    "atheris": "fuzz: operations chosen by coverage (Linux); fuzz --replay works without it",
}
"""Packages that may be absent, each with what that switches off."""

REMEDY = "in a checkout, python -m pip install --editable . brings all that is needed"


def installed_version(package: str) -> str | None:
    """Version of an installed package; None where it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def needed_for(module: str) -> str | None:
    """The needed package that brings a module; None for a module that none of them brings."""
    name = module.partition(".")[0]
    return next((package for package, brought in NEEDED.items() if brought == name), None)


def missing_package(package: str) -> str:
    """One line about a needed package that is not installed, and what to do."""
    return (
        f"{package} is not installed, and the command line needs it; {REMEDY}, and"
        " python -m harness doctor says what else is missing"
    )
