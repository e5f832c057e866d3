"""The world that operations act on: subjects, device, truth and the engine between them.

It asks every rank the same question and compares the answers, and it keeps the engine's own state:
requests, steps, cached prefixes.  It knows no operation by name and checks nothing itself.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, cast
from weakref import proxy

from harness import transfer_room
from harness.check import capacity, effects, ledger
from harness.device.modeled import ModeledDevice
from harness.device.rank_port import RankPort
from harness.engine import Engine, Step
from harness.host import HostTierState
from harness.leader_port import LeaderPort
from harness.lockstep import MEETS_ONCE, LeftAlone, Lockstep
from harness.mistakes import (
    NO_ANSWERS,
    REFUSED_BY_TRANSFERS,
    answers_apart,
    are_equally_short,
    broken_promise,
    is_of_the_harness,
)
from harness.network import NetworkState, connect, detach_sends
from harness.pipeline import results_first
from harness.problem import BrokenSubject
from harness.relay import Relay
from harness.requests import Holds, Phase, Prefix, Request
from harness.rows import RowBook
from harness.scenario import Setup
from harness.stamps import Stamps
from harness.states import states_of
from harness.static_buffers import buffers_of
from harness.subject import Answer, HostSubject, NetworkSubject, Subject
from harness.truth import Truth
from harness.unikv_subject import UnikvSubject
from harness.windows import Retirement
from unikv.device.port import CopyDevice, StorageLayout, Stream
from unikv.errors import Shortage, TransferError

SubjectFactory = Callable[[StorageLayout, CopyDevice], Subject]


class World:
    """One run: two or more ranks of one subject under one engine.

    Attributes:
        setup: the concrete storage and engine.
        subjects, ports: one per rank.
        requests: by name, in order of arrival.
        queued, running, waiting, paused: by phase; who lost everything leads the queue, and who
            waits holds pages while a peer or a copy works on them.
        prefixes: cached beginnings of prompts, least recently used first.
        steps: recorded, unprocessed steps, oldest first.
        open_step: launched and not recorded.
        unsynced_step: without overlap, the step that was launched and is not processed.
        unordered_step: newest launched step whose table reads the schedule stream has not waited.
        forward_stream: where steps run; without overlap, the schedule stream.
        token_bands, window_bands: indices; `state_band` is -1 in models without state.
        books: the first rank's account of every band after the last operation.
        capacity_answers: refusals of takes and answers of reliefs that are not judged yet, each
            with the pages of every band that were asked for.
        host, transfers, rows, states, relay: the engine's account of each.
        retirement: how the engine decides which window rows it needs.
        network: every rank's transfer engine; None where there are no peers.
        probes, check_runs: how often each was reached, and how often each check ran.
    """

    def __init__(self, setup: Setup, factory: SubjectFactory = UnikvSubject) -> None:
        self.setup = setup
        self.layout = setup.layout()
        self.device = ModeledDevice(self.layout, setup.ranks, setup.staging_buffers)
        self.truth = Truth(self.layout, self.device)
        # Truth knows the device, and the device asks it only when something was found.
        self.device.witness = proxy(self.truth)
        self.engine = Engine(self.device, setup.steps_in_flight, buffers_of(setup))
        self.ports: list[RankPort] = [LeaderPort(self.device, self.truth)]
        self.ports += [RankPort(self.device, rank) for rank in range(1, setup.ranks)]
        self._rank_range = range(setup.ranks)
        self.lockstep = Lockstep(setup.ranks)
        self.transfers = NetworkState()
        self.network = connect(self)
        self.subjects = [factory(self.layout, port) for port in self.ports]
        self._doors = list(zip(self.ports, self.subjects, strict=True))
        self._followers = range(1, setup.ranks)
        self.requests: dict[str, Request] = {}
        self.queued: OrderedDict[str, Request] = OrderedDict()
        self.running: dict[str, Request] = {}
        self.waiting: dict[str, Request] = {}
        self.paused: dict[str, Request] = {}
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
        self.capacity_answers: list[tuple[Shortage | bool, tuple[int, ...]]] = []
        self.host = HostTierState()
        self.rows = RowBook(setup, self.subjects[0].families)
        self.states = states_of(setup)
        self.relay = Relay()
        self.retirement = Retirement()
        self.stamps = Stamps().draw

    @property
    def host_subject(self) -> HostSubject | None:
        """The first rank's subject where it has a host tier to work with."""
        if self.setup.host and "host" in self.subjects[0].families:
            return cast(HostSubject, self.subjects[0])
        return None

    @property
    def network_subject(self) -> NetworkSubject | None:
        """The first rank's subject where it has peers to work with."""
        if self.network is not None and "network" in self.subjects[0].families:
            return cast(NetworkSubject, self.subjects[0])
        return None

    # What the engine asks of the allocator -------------------------------------------------

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call `name` on every rank; the first rank's answer, or the `Shortage` it raised.

        Raises:
            BrokenSubject: if a rank raised anything else, or the ranks disagree.
        """
        self.asked = True
        if self.network is None:
            answers = [self._call(rank, name, arguments) for rank in self._rank_range]
        else:
            answers = self._call_in_step(name, arguments)
        answer = answers[0]
        for rank in self._followers:
            other = answers[rank]
            if other != answer and not are_equally_short(answer, other):
                self.truth.note(
                    "divergence",
                    "ranks answer differently",
                    answers_apart(name, arguments, answer, rank, other),
                )
                raise BrokenSubject
        return answer

    def _call(self, rank: int, name: str, arguments: Sequence[Any]) -> Any:
        port, subject = self._doors[rank]
        port.begin_call(name)
        try:
            return getattr(subject, name)(*arguments)
        except Shortage as shortage:
            # An answer, kept for a while: its traceback would keep the whole world with it.
            return shortage.with_traceback(None)
        except NO_ANSWERS as error:
            if is_of_the_harness(error):
                raise
            if isinstance(error, TransferError) and name in REFUSED_BY_TRANSFERS:
                return error.with_traceback(None)
            self.truth.note(*broken_promise(name, arguments, error, self.layout))
            raise BrokenSubject from error

    def _call_in_step(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Call every rank where calls may meet in a collective."""
        try:
            meet = self.lockstep.meet_once if name in MEETS_ONCE else self.lockstep.run
            return meet(lambda rank: self._call(rank, name, arguments))
        except LeftAlone as error:
            self.truth.note("divergence", "a rank is left alone", f"{name}: {error}")
            raise BrokenSubject from error

    def take(self, pages: int, slots: int) -> Answer | None:
        """Take pages and state slots for the engine; None when the allocator is short."""
        return self.take_with("take", pages, slots)

    def take_with(self, name: str, pages: int, slots: int, *arguments: str) -> Answer | None:
        """Take through the call `name`, whose first arguments are given."""
        counts = tuple(slots if band == self.state_band else pages for band in self.band_range)
        answer = self.ask_for(counts, ("fits", pages, slots), (name, *arguments, pages, slots))
        if answer is None:
            return None
        if not isinstance(answer, Answer):
            self.truth.note(
                "assertion", "answer of another type", f"{name} answers {answer!r}, not an Answer"
            )
            raise BrokenSubject
        self.truth.handed_out(self.owner_band, answer.ids)
        if len(answer.ids) != pages or len(answer.slots) != slots:
            text = f"{name} of {pages} pages and {slots} slots answers {answer!r}"
            self.truth.note("capacity", "take of another size", text)
            raise BrokenSubject
        if answer.slots:
            self.truth.handed_out(self.state_band, answer.slots)
        return answer

    def ask_for(
        self, counts: tuple[int, ...], question: tuple[Any, ...], call: tuple[Any, ...]
    ) -> Any | None:
        """Ask whether pages fit, and for them; None when the allocator is short.

        Every yes is taken at once, and every no is kept for the judge.

        Args:
            counts: pages of every band.
            question, call: names and arguments of the two calls.
        """
        self.untouched = False
        self.order_tables()
        promised = self.ask(*question)
        answer = transfer_room.ask(self, counts, call)
        if isinstance(answer, TransferError):
            self.answers.append("TransferError")
            return None
        if isinstance(answer, Shortage):
            self.answers.append(str(answer))
            capacity.after_a_shortage(self, answer, counts)
            self.capacity_answers.append((answer, counts))
            self.probes["ids_refused" if answer.kind == "ids" else "take_refused"] += 1
            if promised:
                capacity.after_a_broken_yes(self, counts, question[0], call[0], answer)
            return None
        self.answers.append(answer)
        if not promised:
            capacity.after_a_broken_no(self, counts, question[0], call[0])
        return answer

    def free_with(self, name: str, *arguments: Any) -> None:
        """Ask for a free of some kind, which waits for nothing."""
        self.order_tables()
        self.frees += 1
        submitted, freed = len(self.ports[0].log), ledger.freed_before(self)
        self.ask(name, *arguments)
        effects.after_free(self, name, submitted)
        ledger.after_free(self, name, freed)

    def free_pages(self, ids: list[int]) -> None:
        """Free virtual pages that nobody holds any more."""
        if ids:
            self.host.freed(ids)
            self.truth.given_back(self.owner_band, ids)
            self.free_with("free", ids)

    def free_slots(self, slots: list[int]) -> None:
        """Free state slots."""
        if slots:
            self.host.slots_freed(slots)
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

    untouched = True
    """Whether nobody has asked for a page yet."""

    room: transfer_room.RoomCall | None = None
    """The call being made, where it may make room."""

    asked = False
    """Whether the operation being applied reached the allocator."""

    at_rest = False
    """Whether the operation being applied left nothing in flight."""

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

    def arrive(self, request: Request) -> None:
        """A request joins the queue."""
        self.requests[request.name] = self.queued[request.name] = request

    def admit(self, request: Request) -> None:
        """A queued request runs from now on."""
        self.running[request.name] = self.queued.pop(request.name)
        request.phase = Phase.RUNNING

    def receive(self, request: Request) -> None:
        """A queued request waits for a peer from now on."""
        self.waiting[request.name] = self.queued.pop(request.name)
        request.phase = Phase.RECEIVING

    def received(self, request: Request) -> None:
        """A peer has written a request's whole prompt: it runs from now on."""
        self.running[request.name] = self.waiting.pop(request.name)
        request.phase = Phase.RUNNING
        request.length = request.prompt
        self.states.arrived(self, request)
        request.came_from = "peer"
        block_pages = self.setup.block_pages
        self.truth.remember_prefix(request.pages, 0, request.blocks, block_pages)

    def forget(self, request: Request) -> None:
        """A request that holds nothing is gone."""
        del self.requests[request.name]
        self.queued.pop(request.name, None)

    def release(self, request: Request) -> None:
        """Give back everything a running request holds; it waits at the head of the queue."""
        with results_first(self, request):
            tails = [request.pages[request.window_first[band] :] for band in self.window_bands]
            slots = self.states.ended(self, request)
            if request.source_key:
                self.prefixes[request.source_key].locks -= 1
            detach_sends(self, request.name)
            self.let_go(request.pages, tails)
            self.free_slots(slots)
            if request.row >= 0:
                self.rows.give_back(self, request)
        phases = {Phase.RUNNING: self.running, Phase.PAUSED: self.paused}
        by_phase = phases.get(request.phase, self.waiting)
        self.queued[request.name] = by_phase.pop(request.name)
        request.reset()
        self.queued.move_to_end(request.name, last=False)
