"""A copy pairs each page with its own host slot, whatever the bytes say."""

from harness.copy_pairs import CopyPairs


def asked() -> CopyPairs:
    """Ids 1, 2 and 3 of band 1 are kept in slots 5, 6 and 7, and loaded as ids 11, 12 and 13."""
    pairs = CopyPairs(2)
    pairs.backup_asked([[], [1, 2, 3]], [[], [5, 6, 7]])
    pairs.load_asked([[], [11, 12, 13]], [[], [5, 6, 7]])
    return pairs


def test_pairs_in_any_order_are_fine() -> None:
    assert asked().stray("backup", 1, [3, 1], [7, 5]) is None
    assert asked().stray("load", 1, [12, 11], [6, 5]) is None


def test_backup_into_the_slot_of_another_page_is_named() -> None:
    assert asked().stray("backup", 1, [1, 2], [6, 5]) == (1, 6, "that slot is for id 2")


def test_load_from_the_slot_of_another_page_is_named() -> None:
    assert asked().stray("load", 1, [11, 12], [5, 7]) == (
        12,
        7,
        "id 12 is what slot 6 comes back as",
    )


def test_slot_that_was_kept_for_nobody_is_not_judged() -> None:
    assert asked().stray("backup", 0, [1], [5]) is None
    assert asked().stray("load", 1, [14], [5]) is None
