"""Two operations made one: what comes out is an operation that a case file may hold."""

import msgspec

from harness.ops import Complete, Operation
from harness.simpler import merged


def test_numbers_that_are_added_stay_within_what_the_operation_allows() -> None:
    made = list(merged(Complete(1, 8, 40), Complete(1, 8, 20)))
    assert made
    for operation in made:
        data = msgspec.json.encode(operation)
        assert msgspec.json.decode(data, type=Operation) == operation
