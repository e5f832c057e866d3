"""The world that operations act on: subjects, device, truth and the engine between them.

It asks every rank the same question and compares the answers, and it keeps the engine's own state:
requests, steps, cached prefixes.  It knows no operation by name and checks nothing itself.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any
from weakref import proxy

from harness.check import effects
from harness.device.modeled import ModeledDevice, ModeledEvent
from harness.device.rank_port import RankPort
from harness.engine import Engine, Step
from harness.requests import Holds, Prefix, Request
from harness.scenario import Setup
from harness.subject import Answer, Subject
from harness.truth import Truth
from harness.unikv_subject import UnikvSubject
from unikv.device.port import Device, Event, StorageLayout, Stream
from unikv.errors import OwnershipError, Shortage, StepOrderError, UnikvError

SubjectFactory = Callable[[StorageLayout, Device], Subject]


class BrokenSubject(Exception):
    """A subject raised something that is no answer: the run cannot go on."""


class LeaderPort(RankPort):
    """The first rank's port, whose submissions truth learns from."""

    def __init__(self, device: ModeledDevice, truth: Truth) -> None:
        super().__init__(device, 0)
        self._truth = truth

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Put later work of `stream` behind `event`."""
        assert isinstance(event, ModeledEvent)
        if stream is Stream.SCHEDULE:
            self._truth.waited(event)
        super().wait_event(stream, event)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy whole pages."""
        self._truth.moved(band)
        super().move_pages(stream, band, sources, targets)

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Write page map entries."""
        self._truth.map_written(band, ids, pages)
        super().write_map(stream, band, ids, pages)


class World:
    """One run: two or more ranks of one subject under one engine.

    Attributes:
        setup: the concrete storage and engine.
        subjects, ports: one per rank.
        requests: by name, in order of arrival.
        prefixes: cached beginnings of prompts, least recently used first.
        steps: recorded, unprocessed steps, oldest first.
        open_step: launched and not recorded.
        unsynced_step: without overlap, the step that was launched and is not processed.
        unordered_step: newest launched step whose table reads the schedule stream has not waited.
        forward_stream: where steps run; without overlap, the schedule stream.
        token_bands, window_bands: indices; `state_band` is -1 in models without state.
        books: the first rank's account of every band after the last operation.
        capacity_answers: refusals of takes and answers of reliefs that are not judged yet, each
            with the pages and slots that were asked for.
        probes, check_runs: how often each was reached, and how often each check ran.
    """

    def __init__(self, setup: Setup, factory: SubjectFactory = UnikvSubject) -> None:
        self.setup = setup
        self.layout = setup.layout()
        # One upload a step: as many buffers as steps that may be unprocessed at once.
        self.device = ModeledDevice(self.layout, setup.ranks, setup.steps_in_flight)
        self.truth = Truth(self.layout, self.device)
        # Truth knows the device, and the device asks it only when something was found.
        self.device.witness = proxy(self.truth)
        self.engine = Engine(self.device, setup.steps_in_flight)
        self.ports: list[RankPort] = [LeaderPort(self.device, self.truth)]
        self.ports += [RankPort(self.device, rank) for rank in range(1, setup.ranks)]
        self.subjects = [factory(self.layout, port) for port in self.ports]
        self.requests: dict[str, Request] = {}
        self.prefixes: OrderedDict[tuple[int, ...], Prefix] = OrderedDict()
        self.steps: list[Step] = []
        self.open_step: Step | None = None
        self.unordered_step: Step | None = None
        self.unsynced_step: Step | None = None
        self.step_count = 0
        self.frees = 0
        self.books = self.subjects[0].books()
        self.forward_stream = Stream.FORWARD if setup.overlap else Stream.SCHEDULE
        bands = setup.bands
        self.band_range = range(len(bands))
        self.owner_band = len(bands) - 1
        self.token_bands = [i for i, band in enumerate(bands) if band.kind != "state"]
        self.window_bands = [i for i, band in enumerate(bands) if band.kind == "window"]
        self.state_band = next((i for i, band in enumerate(bands) if band.kind == "state"), -1)
        self.page_holds = Holds(bands[-1].id_count)
        self.row_holds = {i: Holds(bands[-1].id_count) for i in self.window_bands}
        self.probes: Counter[str] = Counter()
        self.check_runs: Counter[str] = Counter()
        self.answers: list[object] = []
        self.capacity_answers: list[tuple[Shortage | bool, tuple[int, int]]] = []
        self._stamp = 1
        self._stamp_factors: dict[int, tuple[int, int]] = {}

    # What the engine asks of the allocator -------------------------------------------------

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call `name` on every rank; the first rank's answer, or the `Shortage` it raised.

        Raises:
            BrokenSubject: if a rank raised anything else, or the ranks disagree.
        """
        self.asked = True
        answer = self._call(0, name, arguments)
        for rank in range(1, len(self.subjects)):
            other = self._call(rank, name, arguments)
            if other != answer and not (
                isinstance(answer, Shortage)
                and isinstance(other, Shortage)
                and answer.args == other.args
            ):
                self.truth.note(
                    "divergence",
                    "ranks answer differently",
                    f"{name}{arguments}: rank 0 says {answer!r}, rank {rank} says {other!r}",
                )
                raise BrokenSubject
        return answer

    def _call(self, rank: int, name: str, arguments: Sequence[Any]) -> Any:
        self.ports[rank].begin_call()
        try:
            return getattr(self.subjects[rank], name)(*arguments)
        except Shortage as shortage:
            # An answer, kept for a while: its traceback would keep the whole world with it.
            return shortage.with_traceback(None)
        except OwnershipError as error:
            self.truth.note("ownership", "allocator refused a legal call", f"{name}: {error}")
        except StepOrderError as error:
            self.truth.note("ledger", "allocator refused a legal step", f"{name}: {error}")
        except UnikvError as error:
            kind = type(error).__name__
            self.truth.note("assertion", f"{kind} in {name}", f"{name}{arguments}: {error}")
        except _MISTAKES as error:
            if _raised_by_the_harness(error):
                raise
            kind = type(error).__name__
            what = f"{name}{arguments}: {kind} at {_place(error)}: {error}"
            self.truth.note("assertion", f"{kind} in {name}", what)
        raise BrokenSubject

    def take(self, pages: int, slots: int) -> Answer | None:
        """Take pages and state slots for the engine; None when the allocator is short.

        Every yes of the capacity question is taken at once, and every no is kept for the judge.
        """
        self.order_tables()
        promised = self.ask("fits", pages, slots)
        submitted = len(self.ports[0].log)
        answer = self.ask("take", pages, slots)
        self.answers.append(answer if isinstance(answer, Answer) else str(answer))
        demand = (pages, slots)
        if isinstance(answer, Shortage):
            effects.after_refusal(self, submitted, self.books)
            self.capacity_answers.append((answer, demand))
            self.probes["ids_refused" if answer.kind == "ids" else "take_refused"] += 1
            if promised:
                self.truth.note(
                    "capacity",
                    "take refused after a yes",
                    f"{pages} pages and {slots} slots fit, but the take says: {answer}",
                )
            return None
        if not isinstance(answer, Answer):
            self.truth.note(
                "assertion", "answer of another type", f"take answers {answer!r}, not an Answer"
            )
            raise BrokenSubject
        if not promised:
            self.truth.note(
                "capacity",
                "take served after a no",
                f"{pages} pages and {slots} slots do not fit, but the take served them",
            )
        self.truth.handed_out(self.owner_band, answer.ids)
        if len(answer.ids) != pages or len(answer.slots) != slots:
            self.truth.note("capacity", "take of another size", f"asked {demand}, got {answer!r}")
            raise BrokenSubject
        if answer.slots:
            self.truth.handed_out(self.state_band, answer.slots)
        return answer

    def free_with(self, name: str, *arguments: Any) -> None:
        """Ask for a free of some kind, which waits for nothing."""
        self.order_tables()
        self.frees += 1
        submitted = len(self.ports[0].log)
        self.ask(name, *arguments)
        effects.after_free(self, name, submitted)

    def free_pages(self, ids: list[int]) -> None:
        """Free virtual pages that nobody holds any more."""
        if ids:
            self.truth.given_back(self.owner_band, ids)
            self.free_with("free", ids)

    def free_slots(self, slots: list[int]) -> None:
        """Free state slots."""
        if slots:
            self.truth.given_back(self.state_band, slots)
            self.free_with("free_slots", slots)

    def retire_rows(self, band: int, ids: list[int]) -> None:
        """Free window rows whose pages live on in the owner."""
        if ids:
            self.free_with("retire", band, ids)

    # The engine's loop ---------------------------------------------------------------------

    def order_tables(self) -> None:
        """Make tables safe to write: the barrier of the newest step, or without overlap its end."""
        if self.unsynced_step is not None:
            self.synchronize_step()
        if self.unordered_step is not None:
            self.engine.order_tables(self.unordered_step)
            self.unordered_step = None

    def record_open_step(self, *, known: bool = True) -> None:
        """Give the open step its event; `known` says whether the allocator hears what it writes."""
        step = self.open_step
        assert step is not None
        step.event = self.engine.end_of(step)
        self.open_step = None
        self.truth.recorded(step.number, step.event, step.written_pages, known=known)
        if known:
            self.ask("record_step", step.number, step.event, step.writes)
        else:
            self.ask("record_step_of_unknown_writes", step.number, step.event)
        self.steps.append(step)

    def synchronize_step(self) -> None:
        """Without overlap: the host waits for the step; the allocator never hears of it."""
        step = self.unsynced_step
        assert step is not None
        self.unsynced_step = None
        self.probes["ran_without_overlap"] += 1
        self.engine.synchronize(step)
        self.engine.give_back_staging(step)

    def process_oldest_step(self) -> Step:
        """The host synchronizes the oldest recorded step and the allocator hears of it."""
        step = self.steps.pop(0)
        self.engine.synchronize(step)
        self.ask("process_step", step.number)
        self.truth.processed(step.number)
        self.engine.give_back_staging(step)
        return step

    def come_to_rest(self) -> None:
        """Record, process and drain everything that is in flight; requests stay as they are."""
        if self.open_step is not None:
            self.record_open_step()
        if self.unsynced_step is not None:
            self.synchronize_step()
        while self.steps:
            self.process_oldest_step()
        self.device.drain()
        self.at_rest = True
        self.asked = True
        self.probes["rested"] += 1

    asked = False
    """Whether the operation being applied reached the allocator."""

    at_rest = False
    """Whether the operation being applied left nothing in flight."""

    def stamps(self, cells: int) -> bytes:
        """Bytes of `cells` stamps that nobody has written before."""
        factors = self._stamp_factors.get(cells)
        if factors is None:
            ones = sum(1 << (32 * i) for i in range(cells))
            ramp = sum(i << (32 * i) for i in range(cells))
            factors = self._stamp_factors[cells] = (ones, ramp)
        first = self._stamp
        self._stamp += cells
        return (first * factors[0] + factors[1]).to_bytes(4 * cells, "little")

    # Who holds what ------------------------------------------------------------------------

    def hold(self, pages: Sequence[int], tails: Sequence[Sequence[int]]) -> None:
        """One more holder of pages and, per window band, of window rows."""
        self.page_holds.add(pages)
        for band, rows in zip(self.window_bands, tails, strict=True):
            self.row_holds[band].add(rows)

    def let_go(self, pages: Sequence[int], tails: Sequence[Sequence[int]]) -> None:
        """One holder less; what nobody holds any more is freed."""
        unowned = self.page_holds.drop(pages)
        gone = set(unowned)
        for band, rows in zip(self.window_bands, tails, strict=True):
            retired = [unit for unit in self.row_holds[band].drop(rows) if unit not in gone]
            self.retire_rows(band, retired)
        self.free_pages(unowned)

    def release(self, request: Request) -> None:
        """Give back everything a running request holds."""
        tails = [request.pages[request.window_first[band] :] for band in self.window_bands]
        slots = [slot for slot in (request.slot, request.checkpoint) if slot]
        if request.source_key:
            self.prefixes[request.source_key].locks -= 1
        self.let_go(request.pages, tails)
        self.free_slots(slots)
        self.order_tables()
        self.ask("free_row", request.row)
        request.reset()


_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What a mistake in an allocator raises."""


def _innermost(error: BaseException) -> TracebackType:
    frame = error.__traceback__
    assert frame is not None
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame


def _raised_by_the_harness(error: BaseException) -> bool:
    """Whether our own device or books failed under the allocator's call: then it is our bug."""
    module: str = _innermost(error).tb_frame.f_globals["__name__"]
    return module.startswith(("harness.device.", "harness.truth", "harness.world"))


def _place(error: BaseException) -> str:
    """Module and line that raised."""
    frame = _innermost(error)
    return f"{frame.tb_frame.f_globals['__name__']}:{frame.tb_lineno}"
