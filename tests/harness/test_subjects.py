"""The contract of a subject: every allocator under test runs every scenario without a report."""

import pytest

from harness.choices import SeedChoices
from harness.runner import run_seed
from harness.scenario import Setup
from harness.setup import draw_setup
from harness.static_subject import StaticSubject
from harness.subject import Answer, Subject
from harness.unikv_subject import UnikvSubject
from harness.world import SubjectFactory
from tests.alloc.small_chain import Mark
from tests.harness.lived_in import SCENARIOS, scenario
from unikv.errors import OwnershipError, Shortage, StepOrderError
from unikv.trace.still_device import StillDevice

SHIPPED = sorted(
    path.relative_to(SCENARIOS).with_suffix("").as_posix() for path in SCENARIOS.rglob("*.yaml")
)
SUBJECTS: tuple[SubjectFactory, ...] = (UnikvSubject, StaticSubject)
each_subject = pytest.mark.parametrize("subject", SUBJECTS)


@each_subject
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("strategy", ["random", "swarm"])
def test_a_clean_allocator_is_not_reported(
    subject: SubjectFactory, name: str, strategy: str
) -> None:
    for seed in range(2):
        result = run_seed(scenario(name), name, seed, 120, subject=subject, strategy=strategy)
        assert result.violations == ()
        assert result.applied > 0


@each_subject
@pytest.mark.parametrize("ranks", [1, 3])
def test_any_number_of_ranks_runs_clean(subject: SubjectFactory, ranks: int) -> None:
    result = run_seed(scenario("hybrid"), "hybrid", 5, 150, subject=subject, ranks=ranks)
    assert result.violations == ()
    assert result.setup.ranks == ranks


@each_subject
def test_every_check_runs_in_every_run(subject: SubjectFactory) -> None:
    result = run_seed(scenario("hybrid"), "hybrid", 1, 250, subject=subject)
    ran = {name for name, times in result.checks.items() if times}
    assert ran >= {"ordering", "content", "ownership", "mapping", "translation", "conservation"}
    assert ran >= {"ledger", "divergence", "host_reads", "idle"}


def test_subjects_are_asked_the_same_and_answer_for_themselves() -> None:
    results = [
        run_seed(scenario("smoke"), "smoke", 3, 200, subject=subject) for subject in SUBJECTS
    ]
    assert results[0].setup == results[1].setup
    assert results[0].digest != results[1].digest


def test_pools_that_cannot_move_have_no_moves() -> None:
    result = run_seed(scenario("hybrid"), "hybrid", 2, 300, subject=StaticSubject)
    assert result.counters["moves"] == result.counters["relocations"] == 0


# One subject at a time ---------------------------------------------------------------------


def setup() -> Setup:
    """A state band, a window and full attention."""
    return draw_setup(scenario("hybrid"), SeedChoices(2))


def fresh(subject: SubjectFactory) -> Subject:
    """An allocator that has been asked nothing."""
    layout = setup().layout()
    return subject(layout, StillDevice())


@each_subject
def test_a_take_binds_every_token_band(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    assert allocator.fits(1, 1)
    answer = allocator.take(1, 1)
    assert answer == Answer([1], [1])
    pages = [allocator.translate(band, [1])[0] for band in range(3)]
    assert all(pages)
    assert [allocator.page_map(band)[1] for band in range(3)] == pages
    assert [allocator.inverse_map(band)[page] for band, page in enumerate(pages)] == [1, 1, 1]


@each_subject
def test_books_count_what_they_show(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    allocator.take(1, 1)
    for states, (low, high), counts in allocator.books():
        assert counts == tuple(states.count(state) for state in range(1, 5))
        assert counts[0] == 1
        assert sum(counts) == high - low
        assert not any(states[:low] + states[high:])


@each_subject
def test_more_than_there_is_is_refused_and_changes_nothing(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    before = allocator.books()
    assert not allocator.fits(10_000, 0)
    with pytest.raises(Shortage):
        allocator.take(10_000, 0)
    assert allocator.books() == before


@each_subject
def test_what_is_freed_can_be_taken_again(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    answer = allocator.take(1, 1)
    before = allocator.books()
    allocator.free(answer.ids)
    allocator.free_slots(answer.slots)
    assert allocator.translate(2, [1]) == [0]
    allocator.take(1, 1)
    assert allocator.books() == before


@each_subject
def test_a_double_free_is_refused(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    answer = allocator.take(1, 0)
    allocator.free(answer.ids)
    with pytest.raises(OwnershipError):
        allocator.free(answer.ids)


@each_subject
def test_a_page_freed_under_a_step_pends_until_it_is_processed(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    answer = allocator.take(1, 0)
    allocator.launch_step(1)
    allocator.record_step(1, Mark("end"), [[], answer.ids, answer.ids])
    assert {(use.kind, use.step) for use in allocator.uses()} == {("forward_write", 1)}
    allocator.free(answer.ids)
    assert [book.counts[2] for book in allocator.books()] == [0, 1, 1]
    allocator.process_step(1)
    assert [book.counts[2] for book in allocator.books()] == [0, 0, 0]
    assert allocator.uses() == []


@each_subject
def test_nothing_is_taken_between_launch_and_record(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    allocator.launch_step(1)
    with pytest.raises(StepOrderError):
        allocator.take(1, 0)


@each_subject
def test_rows_are_lent_and_returned(subject: SubjectFactory) -> None:
    allocator = fresh(subject)
    rows = allocator.free_rows()
    assert rows == setup().rows
    row = allocator.take_row()
    allocator.append_row(row, [1, 2])
    assert allocator.row(row) == [1, 2]
    assert allocator.free_rows() == rows - 1
    allocator.free_row(row)
    assert allocator.free_rows() == rows
