"""Which program it is: whatever changes in a module changes the digest, and nothing else does."""

from pathlib import Path

import pytest

from harness.program import PACKAGES, ROOT, sources_digest


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A program of two modules in each package."""
    for package in PACKAGES:
        (tmp_path / package / "inner").mkdir(parents=True)
        (tmp_path / package / "one.py").write_text("a = 1\n")
        (tmp_path / package / "inner" / "two.py").write_text("b = 2\n")
    return tmp_path


@pytest.mark.parametrize("package", PACKAGES)
def test_a_changed_byte_is_another_program(tree: Path, package: str) -> None:
    before = sources_digest(tree)
    (tree / package / "inner" / "two.py").write_text("b = 3\n")
    assert sources_digest(tree) != before


def test_a_module_under_another_name_is_another_program(tree: Path) -> None:
    before = sources_digest(tree)
    (tree / "unikv" / "one.py").rename(tree / "unikv" / "three.py")
    assert sources_digest(tree) != before


def test_what_is_no_module_is_no_part_of_it(tree: Path) -> None:
    before = sources_digest(tree)
    (tree / "unikv" / "one.pyc").write_bytes(b"compiled")
    (tree / "tests").mkdir()
    (tree / "tests" / "test_one.py").write_text("c = 3\n")
    assert sources_digest(tree) == before


def test_the_same_program_elsewhere_is_the_same(tree: Path) -> None:
    before = sources_digest(tree)
    assert sources_digest(tree.rename(tree.with_name("elsewhere"))) == before


def test_this_program_has_modules() -> None:
    assert sources_digest() != sources_digest(ROOT / "nowhere")
