"""The program itself: where it lies, and which program it is.

The insight: a version names a release, and whoever looks for a bug changes the program between two
runs.  Only the code itself says whether it is still the one that gave an answer.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEFAULT_SCENARIOS = ROOT / "scenarios"
PACKAGES = ("harness", "shrink", "unikv")
DIGEST_BYTES = 16


def sources_digest(root: Path = ROOT) -> str:
    """Digest of the names and contents of all modules of the program; some hundredths of a second.

    Args:
        root: the folder that the packages lie in.
    """
    paths = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    named = {path.relative_to(root).as_posix(): path for path in paths}
    digest = blake2b(digest_size=DIGEST_BYTES)
    for name in sorted(named):
        content = named[name].read_bytes()
        # The length keeps the end of a file apart from the next name.
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
