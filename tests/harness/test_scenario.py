"""Scenario files: what is read from them, and the one line that a wrong one is told."""

from pathlib import Path

import msgspec
import pytest

from harness.choices import ByteChoices, ListChoices, SeedChoices
from harness.errors import InputError
from harness.loading import FILE_BYTES_MAX, load_scenario
from harness.scenario import CELL_BYTES, HostSetup, Setup
from harness.setup import check_setup, draw_setup
from harness.weights import OPERATION_WEIGHTS
from tests.harness.lived_in import SCENARIOS, scenario

GOOD = """
why: a scenario that nothing is wrong with
model:
  name: two-bands
  source: made up for this test
  layer_groups:
    - count: 12
      pattern:
        - attention:
            geometry: {kind: mha, kv_heads: 8, head_size: 64, dtype: bfloat16}
            lifetime: {kind: window, window: 128}
        - attention:
            geometry: {kind: mha, kv_heads: 8, head_size: 64, dtype: bfloat16}
            lifetime: {kind: full}
page_slots: 4
scale: {entry_bytes: 12288, tokens: 16}
pressure: {arena_pages: [8, 40], id_percent: [60, 160], rows: [2, 6]}
requests:
  prompt_tokens: [1, 40]
  output_tokens: [1, 24]
  chunk_tokens: [4, 24]
  shared_percent: 30
loop: {steps_in_flight: [1, 3]}
"""
SHIPPED = sorted(path.relative_to(SCENARIOS).as_posix() for path in SCENARIOS.rglob("*.yaml"))


def refusal(folder: Path, text: str | bytes) -> str:
    """What a file with this text is told."""
    path = folder / "bad.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert "\n" not in told
    return told.removeprefix(f"{path}: ")


def test_a_file_without_a_mistake_is_read(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    family = load_scenario(path)
    assert len(family.model.layers) == 24
    assert family.pressure.arena_pages == (8, 40)
    assert (family.ranks, family.weights, family.probes) == (2, {}, ())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_loads_and_says_why(name: str) -> None:
    assert load_scenario(SCENARIOS / name).why.strip()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_draws_setups_that_a_case_may_hold(name: str) -> None:
    family = load_scenario(SCENARIOS / name)
    for seed in range(3):
        setup = draw_setup(family, SeedChoices(seed))
        check_setup(setup, name)
        assert msgspec.json.decode(msgspec.json.encode(setup), type=Setup) == setup


def test_host_memory_that_two_bands_share_has_room_for_a_page_of_each() -> None:
    family = scenario("windows")
    for seed in range(600):
        check_setup(draw_setup(family, SeedChoices(seed)), f"seed {seed}")


@pytest.mark.parametrize("name", ["smoke", "hybrid"])
def test_a_setup_is_a_function_of_the_choices(name: str) -> None:
    first = draw_setup(scenario(name), SeedChoices(3))
    assert draw_setup(scenario(name), SeedChoices(3)) == first
    assert any(draw_setup(scenario(name), SeedChoices(seed)) != first for seed in range(4, 9))


def test_a_setup_can_be_drawn_from_nothing() -> None:
    smallest = draw_setup(scenario("smoke"), ListChoices([]))
    assert smallest == draw_setup(scenario("smoke"), ByteChoices(b""))
    assert smallest.rows == scenario("smoke").pressure.rows[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_setup_keeps_to_its_scenario(seed: int) -> None:
    family = scenario("hybrid")
    setup = draw_setup(family, SeedChoices(seed))
    largest = max(band.page_bytes for band in setup.bands)
    smallest = min(band.page_bytes for band in setup.bands)
    pages = (setup.total_bytes - setup.sink_bytes) // largest
    low, high = family.pressure.arena_pages
    assert low <= pages <= high
    assert setup.sink_bytes == largest
    assert largest <= family.scale.page_ratio_max * smallest
    assert family.pressure.rows[0] <= setup.rows <= family.pressure.rows[1]
    assert [band.kind for band in setup.bands] == ["state", "window", "full"]
    assert setup.bands[1].window == 128 // family.scale.tokens
    assert setup.bands[1].id_count == setup.bands[2].id_count


def test_a_layout_says_who_mints_and_who_is_zeroed() -> None:
    layout = draw_setup(scenario("hybrid"), SeedChoices(1)).layout()
    assert [band.mints for band in layout.bands] == [True, False, True]
    assert [band.zeroed for band in layout.bands] == [False, True, True]
    assert [band.slots_per_page for band in layout.bands] == [1, 4, 4]
    assert all(band.page_bytes % CELL_BYTES == 0 for band in layout.bands)


# Wrong files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expected `object`, got `null`"),
        ("- 1\n", "Expected `object`, got `array`"),
        ("a: [1, 2", "not YAML"),
        ("why: \tx\n\ty: 1", "not YAML"),
        (b"\x00\x01", "not YAML"),
        (b"why: \xff\xfe\n", "not YAML"),
        ("x: !!python/object/apply:os.system ['true']\n", "not YAML"),
        ("[" * 400, "not YAML"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    assert words in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("page_slots: 4", "page_slots: 0", "$.page_slots"),
        ("page_slots: 4", "page_slots: 65", "$.page_slots"),
        ("page_slots: 4", "page_slots: '4'", "$.page_slots"),
        ("page_slots: 4", "page_slots: 4.5", "$.page_slots"),
        ("page_slots: 4", "page_slots: null", "$.page_slots"),
        ("page_slots: 4", "page_slot: 4", "page_slot"),
        ("page_slots: 4\n", "", "page_slots"),
        ("page_slots: 4", "page_slots: 4\nranks: 9", "$.ranks"),
        ("rows: [2, 6]", "rows: [2]", "$.pressure.rows"),
        ("rows: [2, 6]", "rows: [0, 6]", "$.pressure.rows"),
        ("rows: [2, 6]", "rows: [6, 2]", "rows is [6, 2]; want [lowest, highest]"),
        ("rows: [2, 6]", "rows: [2, 9999999]", "$.pressure.rows"),
        ("[8, 40]", "[40, 8]", "arena_pages is [40, 8]"),
        ("[8, 40]", "[1, 40]", "raise arena_pages"),
        ("[60, 160]", "[0, 160]", "$.pressure.id_percent"),
        ("shared_percent: 30", "shared_percent: 101", "$.requests.shared_percent"),
        ("prompt_tokens: [1, 40]", "prompt_tokens: [40, 1]", "prompt_tokens is [40, 1]"),
        ("steps_in_flight: [1, 3]", "steps_in_flight: [1, 9]", "$.loop.steps_in_flight"),
        ("steps_in_flight: [1, 3]", "steps_in_flight: [3, 1]", "steps_in_flight is [3, 1]"),
        ("entry_bytes: 12288", "entry_bytes: -1", "$.scale.entry_bytes"),
        ("dtype: bfloat16", "dtype: bfloat17", "bfloat17"),
        ("kind: mha", "kind: mhb", "mhb"),
        ("count: 12", "count: 0", "count is 0; allowed: 1 or more"),
        ("window: 128", "window: 0", "window is 0; allowed: 1 or more"),
        ("kv_heads: 8, ", "", "kv_heads"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in GOOD
    assert words in refusal(tmp_path, GOOD.replace(old, new))


def test_a_scenario_without_a_reason_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("why: a scenario that nothing is wrong with", "why: ' '")
    assert refusal(tmp_path, text).startswith("why is empty")


def test_an_unknown_operation_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    told = refusal(tmp_path, GOOD + "weights: {launch: 3, lunch: 3}\n")
    assert "weights.lunch is no operation" in told
    assert "launch" in told.partition("known: ")[2]


def test_an_unknown_probe_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    told = refusal(tmp_path, GOOD + "probes: [rested, arrested]\n")
    assert "'arrested'" in told
    assert "rested" in told.partition("known: ")[2]


def test_a_model_without_full_attention_is_refused(tmp_path: Path) -> None:
    assert "full" in refusal(tmp_path, GOOD.replace("{kind: full}", "{kind: window, window: 64}"))


# Bounds ------------------------------------------------------------------------------------


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    told = refusal(tmp_path, b"#" * (FILE_BYTES_MAX + 1))
    assert told.startswith(f"scenario of {FILE_BYTES_MAX + 1} bytes; at most {FILE_BYTES_MAX}")


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read this scenario"):
        load_scenario(tmp_path / "none.yaml")


def test_the_bare_name_of_a_scenario_is_answered_with_its_file() -> None:
    with pytest.raises(InputError, match=r"^peers: cannot .* is .*scenarios/peers\.yaml$"):
        load_scenario(Path("peers"))


@pytest.mark.parametrize("path", ["absent/peers", "peers.json"])
def test_a_path_is_no_name_of_a_scenario(path: str) -> None:
    with pytest.raises(InputError, match=r"No such file or directory$"):
        load_scenario(Path(path))


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read this scenario"):
        load_scenario(tmp_path)


def test_layers_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    told = refusal(tmp_path, GOOD.replace("count: 12", "count: 100000000"))
    assert "there are 200000000 layers; allowed: 10000 or fewer" in told


BOMB = """
why: x
model:
  name: a
  source: b
  layer_groups:
    - pattern:
        - &layer
          attention:
            geometry: {kind: mla, latent: 8, rope: 0, dtype: int8}
            lifetime: {kind: full}
        - *layer
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "aliases are not read"),
        (GOOD + "page_slots: 8\n", "key 'page_slots' is given twice"),
        (GOOD.replace("head_size: 64", "head_size: 1" + "0" * 400), "at most 1099511627776"),
        (GOOD.replace("entry_bytes: 12288", "entry_bytes: 1"), "raise scale.entry_bytes"),
        (
            GOOD.replace("[8, 40]", "[8, 1000000]").replace("12288", "1228"),
            "at most 67108864",
        ),
        (GOOD.replace("rows: [2, 6]", "rows: [2, 1000000]"), "entries"),
        (
            f"{GOOD}weights: {{{', '.join(f'{name}: 0' for name in OPERATION_WEIGHTS)}}}\n",
            "every weight is 0",
        ),
    ],
)
def test_what_would_run_out_of_bounds_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(tmp_path, text)


# Stored setups -----------------------------------------------------------------------------


def setup_with(**changes: object) -> Setup:
    """The first setup of the hybrid scenario, with other figures."""
    return msgspec.structs.replace(draw_setup(scenario("hybrid"), SeedChoices(1)), **changes)


def band_with(index: int, **changes: object) -> Setup:
    """The same with other figures in one band."""
    setup = draw_setup(scenario("hybrid"), SeedChoices(1))
    bands = list(setup.bands)
    bands[index] = msgspec.structs.replace(bands[index], **changes)
    return msgspec.structs.replace(setup, bands=tuple(bands))


def hosted(*bands: int, total_bytes: int = 10_000) -> Setup:
    """The same with host memory for some bands, alike for each."""
    parts = tuple(HostSetup(total_bytes=total_bytes, bands=(band,)) for band in bands)
    return setup_with(host=parts)


def test_host_memory_for_every_band_is_read() -> None:
    check_setup(hosted(0, 1, 2), "case.json")


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (band_with(2, kind="window"), "setup.bands[2].kind"),
        (band_with(0, kind="full"), "setup.bands[0].kind"),
        (band_with(1, kind="other"), "setup.bands[1].kind"),
        (band_with(1, kind="state", slots_per_page=1, window=0), "a state band is the first"),
        (band_with(0, slots_per_page=4), "setup.bands[0].slots_per_page is 4; want 1"),
        (band_with(2, slots_per_page=1), "setup.bands[2].slots_per_page is 1; want 4"),
        (band_with(2, window=8), "setup.bands[2].window is 8"),
        (band_with(1, window=0), "setup.bands[1].window is 0"),
        (band_with(1, id_count=1), "setup.bands[1].id_count is 1"),
        (setup_with(sink_bytes=0), "setup.sink_bytes is 0"),
        (setup_with(total_bytes=4), "total_bytes 4"),
        (setup_with(total_bytes=100_001), "multiples of 4"),
        (setup_with(rows=4096, row_pages=100_000), "at most"),
        (band_with(1, name="full"), "named ['state', 'full', 'full']; allowed: each name once"),
        (hosted(0, 1), "setup.host names bands [0, 1]; want each of 0..2 once"),
        (hosted(0, 1, 2, total_bytes=1), "layout.host[0].total_bytes is 1; allowed: "),
    ],
)
def test_a_setup_whose_parts_do_not_fit_together_is_refused(setup: Setup, words: str) -> None:
    with pytest.raises(InputError) as caught:
        check_setup(setup, "case.json")
    assert str(caught.value).startswith("case.json: ")
    assert words in str(caught.value)
