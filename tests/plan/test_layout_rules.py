"""A storage layout written by hand is refused before anything is built on it."""

import pytest

from tests.alloc.small_chain import DiaryDevice
from unikv.device.port import BandLayout, StorageLayout
from unikv.errors import BuildError
from unikv.storage import KVStorage

WINDOW = BandLayout("window", 8, 4, 16, mints=False, zeroed=True)
FULL = BandLayout("full", 8, 4, 16, mints=True, zeroed=True)
STATE = BandLayout("state", 16, 1, 4, mints=True, zeroed=False)
GOOD = StorageLayout(16, 256, (STATE, WINDOW, FULL), 4, 16, 4)


def refusal(layout: StorageLayout) -> str:
    with pytest.raises(BuildError) as refused:
        KVStorage(layout, DiaryDevice(GOOD))
    return str(refused.value)


def test_a_good_layout_is_built() -> None:
    assert KVStorage(GOOD, DiaryDevice(GOOD)).chain.take(1, 1).ids == [1]


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (GOOD._replace(bands=()), "bands is empty"),
        (GOOD._replace(sink_bytes=0), "sink_bytes is 0; allowed: 1 or more"),
        (GOOD._replace(total_bytes=16), "total_bytes is 16; allowed: more than"),
        (GOOD._replace(row_count=0), "row_count is 0"),
        (GOOD._replace(bands=(FULL._replace(page_bytes=-8),)), "bands[0].page_bytes is -8"),
        (GOOD._replace(bands=(WINDOW,)), "'window', mints no ids"),
        (GOOD._replace(bands=(WINDOW, STATE, FULL)), "['state'] mint ids beside the owner"),
        (GOOD._replace(bands=(FULL, FULL)), "each name once"),
        (GOOD._replace(bands=(WINDOW._replace(id_count=3), FULL)), "id_count is 3; allowed: 16"),
        (
            GOOD._replace(bands=(STATE, WINDOW._replace(slots_per_page=8), FULL)),
            "bands[1].slots_per_page is 8; allowed: 4, the page size of every token band",
        ),
        (GOOD._replace(slots_per_page=5), "bands[1].slots_per_page is 4; allowed: 5"),
        (
            GOOD._replace(bands=(STATE._replace(slots_per_page=4), WINDOW, FULL)),
            "bands[0].slots_per_page is 4; allowed: 1, a page of state is one slot",
        ),
        (GOOD._replace(sink_bytes=15), "sink_bytes is 15; allowed: 16 or more"),
    ],
)
def test_a_layout_that_breaks_a_rule_is_refused(layout: StorageLayout, words: str) -> None:
    assert words in refusal(layout)


def test_a_device_without_streams_is_refused() -> None:
    device = DiaryDevice(GOOD)
    device.has_streams = False
    with pytest.raises(BuildError, match="has_streams is False"):
        KVStorage(GOOD, device)
