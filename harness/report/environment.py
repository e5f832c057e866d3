"""What a failure was seen with: versions of everything that ran, and nothing about where.

A report is passed on to strangers, so no host, no user, no path and no setting of the machine is
in it.
"""

from __future__ import annotations

import platform
import re
from importlib import metadata

import msgspec

from unikv import __version__

PACKAGE = "unikv"


def environment() -> bytes:
    """Versions and the kind of machine, as JSON."""
    record = {
        "unikv": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "dependencies": dependencies(),
    }
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def dependencies() -> dict[str, str | None]:
    """Installed versions of what the program needs; None where one is not to be found."""
    try:
        wanted = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return {}
    names = [_name(text) for text in wanted if "extra ==" not in text]
    return {name: _version(name) for name in sorted(names)}


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return found[0]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
