"""Faults of the engine's own account: what it frees too early, twice, or still writes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.device.clock import Access
from harness.device.memory import RunBody
from harness.engine import Step
from harness.faults.fault import Fault
from harness.faults.parts import become, in_world
from harness.ops.requests import pages_for
from harness.requests import Holds, Phase, Request
from harness.scenario import CELL_BYTES
from harness.subject import Answer
from harness.world import World
from unikv.advance import first_needed_page
from unikv.device.port import Stream


class _RetiresAhead(World):
    def retire_rows(self, band: int, ids: list[int]) -> None:
        window, holds = self.setup.bands[band].window, self.row_holds[band]
        for request in self.requests.values():
            if request.phase is Phase.RUNNING and request.prepared:
                after = request.length + request.prepared
                first = first_needed_page(after, window, self.setup.page_slots)
                ahead = request.pages[request.window_first[band] : first]
                if ahead and all(holds.counts[unit] == 1 for unit in ahead):
                    request.window_first[band] = first
                    ids = ids + holds.drop(ahead)
        super().retire_rows(band, ids)


class _RetiresOneMore(World):
    def retire_rows(self, band: int, ids: list[int]) -> None:
        holds = self.row_holds[band]
        for request in self.requests.values():
            if request.phase is Phase.RUNNING and ids and ids[-1] in request.pages:
                first = request.window_first[band]
                extra = request.pages[first : first + 1]
                if extra and holds.counts[extra[0]] == 1:
                    request.window_first[band] += 1
                    ids = ids + holds.drop(extra)
                break
        super().retire_rows(band, ids)


class _WritesFinishedRows(World):
    late_page = 0

    def release(self, request: Request) -> None:
        unit = request.pages[-1] if request.pages else 0
        if unit and self.page_holds.counts[unit] == 1:
            self.late_page = self.device.program.maps[self.owner_band][unit]
        super().release(request)

    def ask(self, name: str, *arguments: Any) -> Any:
        if name == "launch_step" and self.late_page:
            _write_page(self, arguments[0], self.owner_band, self.late_page)
            self.late_page = 0
        return super().ask(name, *arguments)


class _WritesWhatIsBackedUp(World):
    """Fills up the last page of a cached prefix, which the backup of that prefix still reads."""

    def ask(self, name: str, *arguments: Any) -> Any:
        if name == "launch_step":
            band = self.owner_band
            for unit in _under_a_backup(self):
                _write_page(self, arguments[0], band, self.device.program.maps[band][unit])
        return super().ask(name, *arguments)


class _RecordsWhatIsBackedUp(World):
    """Says of a step that it has written such a page."""

    def ask(self, name: str, *arguments: Any) -> Any:
        if name == "record_step":
            number, event, writes = arguments
            owner = [*writes[self.owner_band], *_under_a_backup(self)]
            arguments = (number, event, (*writes[: self.owner_band], owner))
        return super().ask(name, *arguments)


def _under_a_backup(world: World) -> list[int]:
    """Ids of a page of every cached prefix whose submitted backup is not over."""
    backups = world.host.backups.values()
    blocks = [backup.blocks for backup in backups if backup.event is not None]
    return [world.prefixes[key].pages[-1] for key in blocks if key in world.prefixes]


class _PadsTheLastPage(World):
    def ask(self, name: str, *arguments: Any) -> Any:
        if name == "launch_step":
            last = self.layout.total_bytes // self.layout.bands[-1].page_bytes - 1
            _write_page(self, arguments[0], self.owner_band, last)
        return super().ask(name, *arguments)


class _RunsOnWhileItLeaves(World):
    """A request decodes one more token while a peer reads its state."""

    def ask(self, name: str, *arguments: Any) -> Any:
        if name == "launch_step":
            for request in self.waiting.values():
                slot = self.states.slot_of(self, request)
                if request.phase is Phase.LEAVING and slot:
                    band = self.state_band
                    _write_page(self, arguments[0], band, self.device.program.maps[band][slot])
        return super().ask(name, *arguments)


def _write_page(world: World, step: int, band: int, page: int) -> None:
    """One more write of the forward `step`, to a page that is none of its batch's."""
    size = world.layout.bands[band].page_bytes
    low, high = page * size, page * size + size
    body = RunBody([], [], [(low, high, world.stamps(size // CELL_BYTES))], [])
    touched = (Access(world.device.arena, world.device.granules(band, [page]), True),)
    world.device.submit(Stream.FORWARD, "body", step, body, touched)


class FreesAPageTwice(World):
    """Lists one page twice in every free of several."""

    def free_pages(self, ids: list[int]) -> None:
        """Free `ids`, the first of them once more."""
        super().free_pages(ids + ids[:1] if len(ids) > 1 else ids)


class _ShortAtABlockEdge(World):
    def take(self, pages: int, slots: int) -> Answer | None:
        if pages < 2:
            return super().take(pages, slots)
        answer = super().take(pages - 1, slots)
        # The last page has to do for two.
        return answer and Answer([*answer.ids, answer.ids[-1]], answer.slots)


class _DrainsTheNextLife(World):
    """Applies what a step says about a request to whoever has that name when it is processed.

    `lives` counts how often each name gave everything back, `launched` keeps that count per step.
    """

    lives: Counter[str]
    launched: dict[int, Counter[str]]

    def ask(self, name: str, *arguments: Any) -> Any:
        if name == "launch_step":
            self.launched[arguments[0]] = self.lives.copy()
        return super().ask(name, *arguments)

    def release(self, request: Request) -> None:
        self.lives[request.name] += 1
        super().release(request)

    def process_oldest_step(self) -> Step:
        step = super().process_oldest_step()
        lives = self.launched.pop(step.number)
        for name in step.requests:
            request = self.requests.get(name)
            if request is not None and request.pages and self.lives[name] > lives[name]:
                self._drain(request)
        return step

    def _drain(self, request: Request) -> None:
        """Give back the page of a token that the old life had in flight."""
        last = len(request.pages) - 1
        page = request.pages[last:]
        if self.page_holds.counts[page[0]] == 1:
            tails = [page if request.window_first[i] <= last else [] for i in self.window_bands]
            self.let_go(page, tails)


class _Asked(dict[str, Request]):
    """Requests by name; `name` is the one that was asked for last."""

    name = ""

    def get(self, name: str, default: Any = None) -> Any:
        self.name = name
        return super().get(name, default)


class _PricesTheFirstPrompt(World):
    """Asks for room as if a retracted request had still the prompt it came with."""

    first_prompts: dict[str, int]

    def ask(self, name: str, *arguments: Any) -> Any:
        if name == "fits" and isinstance(self.requests, _Asked):
            request = self.requests.get(self.requests.name)
            if request is not None and request.phase is Phase.QUEUED:
                first = self.first_prompts.setdefault(request.name, request.prompt)
                pages, slots = arguments
                arguments = (min(pages, pages_for(first, self.setup.page_slots)), slots)
        return super().ask(name, *arguments)


class _OneHolderIsAll(Holds):
    __slots__ = ()

    def drop(self, ids: Sequence[int]) -> list[int]:
        released = [unit for unit in ids if self.counts[unit]]
        for unit in released:
            self.counts[unit] = 0
            self.held[unit] = 0
        return released


def _forget_page_holders(world: World) -> None:
    become(world.page_holds, _OneHolderIsAll)


def _forget_row_holders(world: World) -> None:
    for holds in world.row_holds.values():
        become(holds, _OneHolderIsAll)


def _drain_the_next_life(world: World) -> None:
    become(world, _DrainsTheNextLife)
    assert isinstance(world, _DrainsTheNextLife)
    world.lives, world.launched = Counter(), {}


def _price_the_first_prompt(world: World) -> None:
    become(world, _PricesTheFirstPrompt)
    assert isinstance(world, _PricesTheFirstPrompt)
    world.requests = _Asked()
    world.first_prompts = {}


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="window-retired-ahead",
        planted="window rows are retired by the tokens prepared, ahead of the tokens launched",
        plant=in_world(_RetiresAhead),
        checks=("translation",),
        rows=("B15",),
    ),
    Fault(
        id="window-retired-one-page-early",
        planted="retiring window rows frees one page that the next token still attends",
        plant=in_world(_RetiresOneMore),
        checks=("translation",),
        rows=("B93",),
    ),
    Fault(
        id="finished-row-still-writes",
        planted="a finished request stays a masked row of the next step and writes its last page",
        plant=in_world(_WritesFinishedRows),
        checks=("ordering", "content"),
        rows=("B17",),
        edge="schedule <- forward",
        pair=("body write", "zero write|move write"),
    ),
    Fault(
        id="padding-writes-the-last-page",
        planted="padding rows write the last page of the arena instead of the sink",
        plant=in_world(_PadsTheLastPage),
        checks=("content", "ordering", "initialised"),
        rows=("B137", "B139"),
        edge="schedule <- forward",
        pair=("body write", "zero write|move|body"),
        ahead=(
            "content",
            "initialised",
        ),
    ),
    Fault(
        id="page-freed-twice-in-one-call",
        planted="a page is listed twice when a request is freed",
        plant=in_world(FreesAPageTwice),
        checks=("ownership",),
        rows=("B83", "B89"),
    ),
    Fault(
        id="page-written-under-its-backup",
        planted="a forward writes a page of a cached prefix that a backup still reads",
        plant=in_world(_WritesWhatIsBackedUp),
        checks=("ordering",),
        scenario="host_tier",
        edge="<- backup",
        pair=("backup read", "body write"),
    ),
    Fault(
        id="page-recorded-under-its-backup",
        planted="a step is recorded as the writer of a page that a backup still reads",
        plant=in_world(_RecordsWhatIsBackedUp),
        checks=("ownership",),
        scenario="host_tier",
    ),
    Fault(
        id="state-written-while-it-is-sent",
        planted="a request runs on while a peer reads its state, which it was handed over with",
        plant=in_world(_RunsOnWhileItLeaves),
        checks=("content", "ordering"),
        scenario="everything",
        edge="<- peer",
        pair=("send read", "body write"),
    ),
    Fault(
        id="block-edge-short",
        planted="an engine takes one page less than its tokens need and writes the last one twice",
        plant=in_world(_ShortAtABlockEdge),
        checks=("content",),
        rows=("B73", "B95"),
    ),
    Fault(
        id="result-applied-to-the-next-life",
        planted="the result of a step that a request was retracted under drains a page of its next"
        " life",
        plant=_drain_the_next_life,
        checks=("translation", "ownership", "idle"),
        rows=("B27",),
    ),
    Fault(
        id="retracted-request-priced-by-its-prompt",
        planted="a retracted request is admitted by the room for its first prompt, without the"
        " tokens it has produced",
        plant=_price_the_first_prompt,
        checks=("capacity",),
        rows=("B107",),
    ),
    Fault(
        id="shared-page-freed-by-first",
        planted="the first of several holders to leave frees a shared page for all of them",
        plant=_forget_page_holders,
        checks=("ownership", "translation"),
        rows=("B85",),
    ),
    Fault(
        id="shared-row-freed-by-first",
        planted="the first of several holders to leave frees a shared window row for all of them",
        plant=_forget_row_holders,
        checks=("translation", "ownership"),
        rows=("B81",),
    ),
)
