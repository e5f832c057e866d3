"""The clearance table: it has a rule for every pair, and no rule that nobody asks for."""

import ast
from functools import cache
from itertools import product
from pathlib import Path

from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "unikv" / "alloc" / "clearance.py"


def names_in(node: ast.AST) -> set[str]:
    """Every `Enum.MEMBER` that is written below a node, as `Enum.MEMBER`."""
    return {
        f"{inner.value.id}.{inner.attr}"
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name)
    }


@cache
def functions_that_look_up() -> list[set[str]]:
    """Per function of the library and the engine that subscripts a clearance table: its names."""
    found = []
    for path in (*ROOT.glob("unikv/**/*.py"), *ROOT.glob("harness/*.py")):
        if path == TABLE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(inner, ast.Subscript) and "clearance" in ast.unparse(inner.value).lower()
                for inner in ast.walk(node)
            ):
                found.append(names_in(node))
    return found


ASKS_NOTHING = {
    Clearance.SAME_STREAM,
    Clearance.AT_HAND_OUT,
    Clearance.NONE,
    # No code of ours could wait: whoever owns received pages learns of them at their release.
    Clearance.AFTER_RELEASE,
}

OWN_STREAM = {
    Toucher.FORWARD: {InFlight.FORWARD, InFlight.UNKNOWN_FORWARD},
    Toucher.LOAD_COPY: {InFlight.LOAD},
    Toucher.BACKUP_COPY: {InFlight.BACKUP},
}
"""What runs on the stream of a toucher; all others touch on the schedule stream."""


@cache
def functions_that_wait_copies() -> list[set[str]]:
    """Per function of the allocator that lets the schedule stream wait copies: its names."""
    return [
        names_in(node)
        for path in ROOT.glob("unikv/alloc/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and "wait_copies(" in ast.unparse(node)
    ]


def test_every_pair_has_a_rule() -> None:
    assert set(CLEARANCE) == set(product(Toucher, InFlight))


def test_a_step_of_unknown_writes_is_cleared_no_sooner_than_one_of_known_writes() -> None:
    differing = {
        toucher
        for toucher in Toucher
        if CLEARANCE[toucher, InFlight.UNKNOWN_FORWARD] is not CLEARANCE[toucher, InFlight.FORWARD]
    }
    assert differing == {Toucher.MOVE_SOURCE}
    assert CLEARANCE[Toucher.MOVE_SOURCE, InFlight.UNKNOWN_FORWARD] is Clearance.NO_MOVE


def test_every_kind_of_clearance_is_some_pairs_rule() -> None:
    assert set(CLEARANCE.values()) == set(Clearance)


def test_work_of_one_stream_needs_nothing_more() -> None:
    for toucher in Toucher:
        for in_flight in OWN_STREAM.get(toucher, {InFlight.SCHEDULE}):
            # Backups only read, so among themselves they are not even in need of an order.
            reads = toucher is Toucher.BACKUP_COPY
            rule = Clearance.NONE if reads else Clearance.SAME_STREAM
            assert CLEARANCE[toucher, in_flight] is rule


def test_only_work_of_one_stream_is_ordered_by_it() -> None:
    one_stream = {
        pair for pair, clearance in CLEARANCE.items() if clearance is Clearance.SAME_STREAM
    }
    for toucher, in_flight in one_stream:
        assert in_flight in OWN_STREAM.get(toucher, {InFlight.SCHEDULE})


def test_only_backups_come_after_a_release() -> None:
    after = {pair for pair, rule in CLEARANCE.items() if rule is Clearance.AFTER_RELEASE}
    assert after == {(Toucher.BACKUP_COPY, InFlight.NETWORK)}


def test_every_rule_that_asks_for_something_is_looked_up() -> None:
    functions = functions_that_look_up()
    for (toucher, in_flight), clearance in CLEARANCE.items():
        if clearance in ASKS_NOTHING:
            continue
        if in_flight is not InFlight.FORWARD and clearance is CLEARANCE.get(
            (toucher, InFlight.FORWARD)
        ):
            continue  # what is asked of every forward is asked once
        wanted = {f"Toucher.{toucher.name}", f"InFlight.{in_flight.name}"}
        wanted.add(f"Clearance.{clearance.name}")
        if clearance is Clearance.WAIT_COPY:
            # One function looks up the copies of whichever toucher its caller names.
            assert any(f"Toucher.{toucher.name}" in names for names in functions_that_wait_copies())
            continue
        assert any(wanted <= names for names in functions), (
            f"no function looks up {toucher} over {in_flight} and acts on {clearance}"
        )
