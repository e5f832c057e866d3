"""What callers hand in by mistake is refused where it enters, in words, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.search.lending_account import books
from tests.alloc.small_chain import DiaryDevice, Mark, layout_of, states, tokens, window
from unikv.alloc.invariants import InvariantLevel, Invariants
from unikv.errors import LISTED, ArgumentError, OwnershipError, StepOrderError, UnikvError, listed
from unikv.storage import KVStorage
from unikv.trace.calls import CALLS, CallKind, Part, part_of

LAYOUT = layout_of(60, 4, states("state"), window("window"), tokens("full"))
NAN = float("nan")
IDS = [[], [1], [1]]
NO_INTS: list[Any] = [True, 1.0, NAN, "1", None, np.int64(1)]

# Arguments that are in order, and those among them, by place, that are a number, a band, ids, ...
GOOD: dict[str, tuple[list[Any], str]] = {
    "chain.fits": ([1, 1], "nn"),
    "chain.take": ([1, 1], "nn"),
    "chain.reserve": ([1, 1], "bn"),
    "chain.fits_load": ([[1, 1, 1]], "c"),
    "chain.take_for_load": ([[1, 1, 1]], "c"),
    "chain.free": ([[1]], "i"),
    "chain.retire": ([1, [1]], "bi"),
    "chain.free_slots": ([[1]], "i"),
    "chain.launch_step": ([2], "s"),
    "chain.record_step": ([1, Mark("end"), IDS], "s.p"),
    "chain.record_step_of_unknown_writes": ([1, Mark("end")], "s."),
    "chain.process_step": ([1], "s"),
    "chain.flush": ([4], "n"),
    "chain.relieve": ([1, 1], "nn"),
    "chain.translate": ([1, [1]], "bi"),
    "users.name_reserved": ([1, [3], [3]], "bii"),
    "users.cancel_reservation": ([1, [3]], "bi"),
    "users.begin_backup": ([IDS, Mark("end")], "p."),
    "users.begin_load": ([IDS, Mark("end")], "p."),
    "users.end_copy": ([1], "s"),
    "users.hold_receive": (["hold", IDS], "wp"),
    "users.publish": (["hold", "receive"], "ww"),
    "users.begin_send": (["send", IDS], "wp"),
    "users.isolate": (["send"], "w"),
    "users.release": (["send"], "w"),
    "ids.writes": ([[4], [1]], "ii"),
    "ids.reads": ([[[1]], [[1]]], "rr"),
    "requests.append": ([0, [1]], "si"),
    "requests.give_back": ([0], "s"),
}

# What each kind of argument must not be.
WRONG: dict[str, list[Any]] = {
    "n": [-1, *NO_INTS],
    "b": [-1, 3, *NO_INTS],
    "s": NO_INTS,
    "i": [[value] for value in NO_INTS],
    "p": [[[], [], [value]] for value in NO_INTS] + [[[1], [1]], []],
    "c": [[1, 1], [1, 2, 1], *([1, value, 1] for value in [-1, *NO_INTS])],
    "r": [[[1], [value]] for value in NO_INTS],
    "w": [1, None, b"send"],
    ".": [],
}


def mistakes() -> list[tuple[CallKind, list[Any]]]:
    """Every call with every argument wrong in every way, one at a time."""
    made = []
    for name, (good, kinds) in GOOD.items():
        for place, kind in enumerate(kinds):
            for wrong in WRONG[kind]:
                made.append((CALLS[name], [*good[:place], wrong, *good[place + 1 :]]))
    return made


def used(level: InvariantLevel = InvariantLevel.OFF) -> tuple[KVStorage, DiaryDevice]:
    """A storage with two pages, two slots, a reservation, a row, a copy, a hold and a send."""
    device = DiaryDevice(LAYOUT)
    storage = KVStorage(LAYOUT, device, invariants=Invariants(level))
    chain = storage.chain
    chain.take(2, 2)
    chain.reserve(1, 1)
    storage.requests.take()
    chain.users.begin_backup([[], [2], [2]], Mark("copy"))
    chain.users.hold_receive("hold", [[], [], [2]])
    chain.users.begin_send("send", [[], [2], []])
    return storage, device


def act(storage: KVStorage, kind: CallKind, arguments: list[Any]) -> Callable[[], object]:
    """The call, to be made."""
    return lambda: getattr(part_of(storage, kind.part), kind.method)(*arguments)


def seen(storage: KVStorage, device: DiaryDevice) -> object:
    """All that a call could change."""
    return books(storage.chain), list(device.calls), storage.requests.rows, storage.statistics()


@pytest.mark.parametrize("level", [InvariantLevel.OFF, InvariantLevel.STRICT])
def test_every_wrong_argument_is_refused_before_anything_changes(level: InvariantLevel) -> None:
    storage, device = used(level)
    for step_is_open in (False, True):
        if step_is_open:
            storage.chain.launch_step(1)
        before = seen(storage, device)
        for kind, arguments in mistakes():
            with pytest.raises((ArgumentError, StepOrderError)) as caught:
                act(storage, kind, arguments)()
            text = str(caught.value)
            assert step_is_open or isinstance(caught.value, ArgumentError)
            assert any(
                said in text for said in ("allowed: ", "counts are 0 or more", " open", "record it")
            )
            assert seen(storage, device) == before, (kind.name, arguments)


def test_every_call_with_arguments_is_tried() -> None:
    # Those of a host tier are tried where the tier is.
    here = {kind.name for kind in CALLS.values() if kind.part is not Part.HOST}
    assert GOOD.keys() >= {name for name in here if CALLS[name].arguments != tuple[()]}


@pytest.mark.parametrize("name", GOOD)
def test_every_call_with_arguments_says_that_it_refuses_them(name: str) -> None:
    owner = type(part_of(used()[0], CALLS[name].part))
    told = f"{owner.__doc__} {getattr(owner, CALLS[name].method).__doc__}"
    assert "ArgumentError" in told or "Raises and Order: as `" in told


def test_a_right_argument_is_refused_by_nobody() -> None:
    for name, (good, _) in GOOD.items():
        storage, device = used()
        if name == "chain.record_step" or name.endswith("unknown_writes"):
            storage.chain.launch_step(1)
        if name == "chain.process_step":
            storage.chain.launch_step(1)
            storage.chain.record_step_of_unknown_writes(1, Mark("step"))
        if name == "users.name_reserved":
            storage.chain.retire(1, [1])
            good = [1, [1], [storage.chain.bands[1].fixed_pages()[0]]]
        if name == "users.cancel_reservation":
            good = [1, storage.chain.bands[1].fixed_pages()]
        act(storage, CALLS[name], good)()
        assert storage.audit() == [], name
        assert device.calls


@pytest.mark.parametrize("number", [-1, 0])
def test_step_numbers_begin_at_one(number: int) -> None:
    storage, _ = used()
    with pytest.raises(UnikvError, match=f"launch of step {number} after step 0; numbers ascend"):
        storage.chain.launch_step(number)


@pytest.mark.parametrize(("units", "told"), [([-1], "[-1]"), ([99, 100], "[100]")])
def test_only_ids_of_the_space_are_translated(units: list[int], told: str) -> None:
    storage, _ = used()
    with pytest.raises(ArgumentError, match=r"translate: .*allowed: 0\.\.99") as caught:
        storage.chain.translate(1, [1, 0, *units])
    assert told in str(caught.value)


def test_ids_of_an_array_are_told_how_to_become_ints() -> None:
    storage, _ = used()
    with pytest.raises(ArgumentError, match=r"np\.int64\(1\) \(int64\).*`tolist`"):
        act(storage, CALLS["chain.free"], [np.array([1])])()
    storage.chain.free(np.array([1]).tolist())


# Reservations: who may name them -------------------------------------------------------------


def test_reserved_pages_of_a_band_with_ids_of_its_own_are_not_named() -> None:
    storage, _ = used()
    chain = storage.chain
    pages = chain.reserve(2, 1)
    before = books(chain)
    with pytest.raises(OwnershipError, match="band 'full': ids \\[7\\] for reserved pages"):
        chain.users.name_reserved(2, [7], pages)
    assert books(chain) == before


def test_reserved_rows_are_named_by_ids_that_the_owner_has_bound() -> None:
    storage, _ = used()
    chain = storage.chain
    before = books(chain)
    with pytest.raises(OwnershipError, match="band 'full': ids \\[7\\] name no page"):
        chain.users.name_reserved(1, [7], chain.bands[1].fixed_pages())
    assert books(chain) == before


def test_one_id_names_one_reserved_page() -> None:
    storage, _ = used()
    with pytest.raises(ArgumentError, match="0 ids for 1 pages"):
        storage.chain.users.name_reserved(1, [], storage.chain.bands[1].fixed_pages())


# Texts ----------------------------------------------------------------------------------------

MANY = layout_of(4 * 3001, 4, window("window", ids=3000), tokens("full", ids=3000))
BOUND = 600
"""Characters that a text may have, whatever it is about."""


@pytest.mark.parametrize(
    ("part", "method", "arguments"),
    [
        (Part.CHAIN, "free", [[1, 2] * 50_000]),
        (Part.CHAIN, "free", [list(range(1, 1400)) * 2]),
        (Part.CHAIN, "free", [list(range(1500, 2900))]),
        (Part.CHAIN, "free", [list(range(-50_000, 0))]),
        (Part.CHAIN, "free", [[True] * 50_000]),
        (Part.CHAIN, "free", [["x" * 50_000] * 20]),
        (Part.CHAIN, "free_slots", [[1] * 50_000]),
        (Part.CHAIN, "retire", [1, [1] * 50_000]),
        (Part.CHAIN, "translate", [0, [-1] * 50_000]),
        (Part.CHAIN, "take", ["9" * 50_000, 0]),
        (Part.CHAIN, "reserve", ["9" * 50_000, 0]),
        (Part.USERS, "name_reserved", [0, [1] * 50_000, [1] * 50_000]),
        (Part.USERS, "cancel_reservation", [0, list(range(50_000))]),
        (Part.USERS, "release", ["x" * 200]),
        (Part.REQUESTS, "append", [0, [NAN] * 50_000]),
        (Part.REQUESTS, "give_back", ["9" * 50_000]),
    ],
)
def test_a_text_names_the_first_few_of_many(part: Part, method: str, arguments: list[Any]) -> None:
    storage = KVStorage(MANY, DiaryDevice(MANY), invariants=Invariants(InvariantLevel.OFF))
    storage.chain.take(1400, 0)
    with pytest.raises(UnikvError) as caught:
        getattr(part_of(storage, part), method)(*arguments)
    assert len(str(caught.value)) < BOUND, str(caught.value)[:1000]


def test_a_list_says_how_many_more_there_are() -> None:
    assert listed([1, 2]) == "[1, 2]"
    assert listed(range(LISTED)) == str(list(range(LISTED)))
    assert listed(range(LISTED + 3)).endswith("11] and 3 more")
