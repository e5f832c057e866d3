"""One byte budget, solved for the requests and tokens that it can serve.

What is fixed comes first: the request table, scratch, the padding sink.  Then the
state slots, because a request without one cannot start.  The rest is one question,
how many pages of full attention fit together with the window pages that so many
tokens need, and the allocator's own `pricing.feasible`, asked about an empty arena,
answers it.  A sized plan can therefore be laid out byte for byte, the remainders
between bands of different page bytes included, and one more page could not.

Windows ask for what the requests that can run retain, and never for more than there
are tokens.  So "does it fit" is monotone in the pages of full attention, and halving
the range finds the most in at most 1 + log2(arena bytes / page bytes) questions.

All sized figures are boot targets.  At run time no band has a cap beyond the
arena's bytes and its ids.  Nothing here knows of devices, ids or running requests.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from unikv.alloc.pricing import feasible, most_pages
from unikv.alloc.snapshot import BandView, ChainView
from unikv.arguments import check_figure, check_int
from unikv.errors import SizingError
from unikv.memory.arena import Arena
from unikv.plan import KVStoragePlan, Placement, SubPool, SubPoolKind

__all__ = [
    "ROW_ENTRY_BYTES",
    "BandSize",
    "ByteTerm",
    "KVStorageSize",
    "StateShare",
    "StateSlots",
    "StorageBudget",
    "floor_terms",
    "min_concurrency",
    "request_pages",
    "sink_bytes",
    "size_plan",
    "token_pages",
]

ROW_ENTRY_BYTES = 4
"""One entry of the request table: a virtual page id as int32."""


@dataclass(frozen=True, slots=True)
class StateSlots:
    """So many state slots: a `SizingError` if that is no int, or the budget cannot hold them."""

    count: int

    def __post_init__(self) -> None:
        check_int(SizingError, "StateSlots: count", self.count)


@dataclass(frozen=True, slots=True)
class StateShare:
    """As many state slots as this share of the chain's bytes holds, rounded down.

    It yields twice: upward to the slots, and downward to the window rows, of one request.

    Raises:
        SizingError: if the percentage is no int of 1..99.
    """

    percent: int

    def __post_init__(self) -> None:
        check_int(SizingError, "StateShare: percent", self.percent)
        if not 1 <= self.percent <= 99:
            raise SizingError(f"StateShare: percent is {self.percent}; allowed: 1 to 99")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageBudget:
    """What one storage may take of a device, and how many requests share it.

    Attributes:
        total_bytes: everything, the arena and what lies beside it.
        row_count: rows of the request table; no more requests run at once.
        row_tokens: the longest request, prompt and output.
        row_scratch_bytes: what each request row has beside its table entries.
        scratch_bytes: scratch of the whole storage.
        state: how many slots; None exactly for a plan without state.

    Raises:
        SizingError: if a figure is impossible, with its value and what is allowed.
    """

    total_bytes: int
    row_count: int
    row_tokens: int
    row_scratch_bytes: int = 0
    scratch_bytes: int = 0
    state: StateSlots | StateShare | None = None

    def __post_init__(self) -> None:
        for name in ("total_bytes", "row_scratch_bytes", "scratch_bytes"):
            check_figure(SizingError, f"StorageBudget: {name}", getattr(self, name), 0)
        for name in ("row_count", "row_tokens"):
            check_figure(SizingError, f"StorageBudget: {name}", getattr(self, name), 1)


class ByteTerm(NamedTuple):
    """One term of a sum of bytes."""

    name: str
    bytes: int


class BandSize(NamedTuple):
    """Boot target of one band: what it holds when every band holds its target."""

    name: str
    pages: int
    slots: int  # tokens, or states, one a page
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KVStorageSize:
    """A budget as `size_plan` divided it.

    Laws:
        total_bytes == the bytes of all fixed terms + sink_bytes + chain_bytes
        the bytes of all bands <= chain_bytes

    Attributes:
        total_bytes: the budget.
        fixed: request table, scratch of request rows, scratch; outside the arena.
        sink_bytes, chain_bytes: the arena: its lowest bytes, and what all bands share.
        bands: targets in chain order; the last one is full attention.
        row_count, row_tokens: rows of the request table, and the longest request of one.
        max_concurrency: requests that can hold their state slots, their window rows
            and one page of full attention each, all at the same time.  0 where not
            even one such page fits; admission refuses every request then.
    """

    total_bytes: int
    fixed: tuple[ByteTerm, ...]
    sink_bytes: int
    chain_bytes: int
    bands: tuple[BandSize, ...]
    row_count: int
    row_tokens: int
    max_concurrency: int

    def __post_init__(self) -> None:
        assert self.total_bytes == _sum(self.fixed) + self.sink_bytes + self.chain_bytes
        assert sum(band.bytes for band in self.bands) <= self.chain_bytes
        assert 0 <= self.max_concurrency <= self.row_count

    @property
    def arena_bytes(self) -> int:
        """The one region that the sink and the bands lie in."""
        return self.sink_bytes + self.chain_bytes

    @property
    def max_tokens(self) -> int:
        """Full-attention tokens of all requests together."""
        return self.bands[-1].slots


def size_plan(plan: KVStoragePlan, budget: StorageBudget) -> KVStorageSize:
    """The most that `budget` can serve of `plan`, as boot targets.

    In this order: fixed allocations, the sink, state slots, then the most full-attention
    tokens whose window targets also fit.  With a count of state slots, or without state, a
    larger budget never gives fewer tokens.  With a share it never gives fewer slots, nor
    fewer tokens beside as many slots; where it affords one more slot, tokens pay for that.

    Raises:
        SizingError: if the budget is below the floor (see `floor_terms`), with every term; if
            it has state and the plan none, or the reverse, or fewer slots than one request needs.
    """
    _refuse_below_floor(budget.total_bytes, floor_terms(plan, budget))
    fixed = _fixed_terms(plan, budget)
    arena = Arena(sink_bytes(plan), budget.total_bytes - _sum(fixed))
    view = _empty_chain(plan, arena)
    slots = _state_slots(plan, budget, view)
    runnable = _runnable(plan, budget, slots)

    def targets(full_pages: int) -> list[int]:
        return _targets(plan, budget, slots, runnable, full_pages)

    full_pages = bisect_left(
        # Zero pages fit, or the floor would not, so only one and more are in question.
        range(1, arena.end_page(plan.owner.page_bytes) + 1),
        True,
        key=lambda pages: not feasible(view, targets(pages)),
    )
    return KVStorageSize(
        total_bytes=budget.total_bytes,
        fixed=fixed,
        sink_bytes=arena.sink_bytes,
        chain_bytes=arena.total_bytes - arena.sink_bytes,
        bands=tuple(map(_band_size, plan.sub_pools, targets(full_pages))),
        row_count=budget.row_count,
        row_tokens=budget.row_tokens,
        max_concurrency=min(runnable, full_pages),
    )


def floor_terms(plan: KVStoragePlan, budget: StorageBudget) -> tuple[ByteTerm, ...]:
    """What must fit before anything is sized; the sum is the smallest budget accepted.

    One request at batch size 1: the fixed allocations, the sink, its window rows and its
    state slots, or as many slots as the budget counts.  Its full-attention tokens are left
    out, because how many it needs is known when it arrives, and admission judges it then.
    The last term is what the bands lose to alignment when they lie side by side.
    `budget.total_bytes` is not read.

    Raises:
        SizingError: as `size_plan`, but for a budget below the floor.
    """
    _check_state(plan, budget)
    terms = [*_fixed_terms(plan, budget), ByteTerm("padding sink", sink_bytes(plan))]
    top = packed = sink_bytes(plan)
    for sub_pool, pages in zip(plan.sub_pools, _floor_pages(plan, budget), strict=True):
        page_bytes = sub_pool.page_bytes
        if pages:
            name = f"{sub_pool.name}, {pages} x {page_bytes}"
            terms.append(ByteTerm(name, pages * page_bytes))
        # A band without a page is the high end, whose wall lies on a page boundary even so.
        top = (-(-top // page_bytes) + pages) * page_bytes
        packed += pages * page_bytes
    return (*terms, ByteTerm("alignment", top - packed))


def request_pages(plan: KVStoragePlan, sub_pool: SubPool, row_tokens: int) -> int:
    """Pages of `sub_pool` that one running request keeps, apart from full attention.

    A window keeps its tokens rounded up to pages, one page more because its first token
    seldom starts a page, and no more than the longest request has.

    State is one slot, which every step overwrites.  With a checkpoint interval it is three:
    the newest complete checkpoint, behind which the window rows are kept, may not be
    overwritten before the next one is complete, so that one is written to a slot of its own.

    Returns:
        0 for full attention, of which a running request keeps everything.
    """
    match sub_pool.kind:
        case SubPoolKind.STATE:
            return 1 if sub_pool.checkpoint_interval is None else 3
        case SubPoolKind.WINDOW:
            assert sub_pool.window is not None
            retained = token_pages(sub_pool.window, plan.page_size) + 1
            return min(retained, token_pages(row_tokens, plan.page_size))
        case SubPoolKind.FULL:
            return 0
        case _:
            assert_never(sub_pool.kind)


def sink_bytes(plan: KVStoragePlan) -> int:
    """One page of the largest band, so that page 0 of every band lies in the sink."""
    return max(sub_pool.page_bytes for sub_pool in plan.sub_pools)


def token_pages(tokens: int, page_size: int) -> int:
    """Pages of `page_size` tokens that hold `tokens` (rounds up)."""
    return -(-tokens // page_size)


def min_concurrency(stages: Sequence[KVStorageSize]) -> int:
    """Requests that every pipeline stage can run at the same time.

    A request runs on all stages or on none, so the stage that can run the fewest decides,
    though each has its own budget and its own bytes per page.

    Raises:
        SizingError: if there is no stage, or two differ in their sub-pools.
    """
    if not stages:
        raise SizingError("concurrency of 0 pipeline stages; allowed: 1 or more")
    first, *others = ([band.name for band in stage.bands] for stage in stages)
    for number, held in enumerate(others, start=1):
        if held != first:
            raise SizingError(
                f"pipeline stage {number} has sub-pools {', '.join(held)}; allowed: "
                f"{', '.join(first)}, as on stage 0; give each stage layers of every kind"
            )
    return min(stage.max_concurrency for stage in stages)


def _fixed_terms(plan: KVStoragePlan, budget: StorageBudget) -> tuple[ByteTerm, ...]:
    entries = budget.row_count * token_pages(budget.row_tokens, plan.page_size)
    return (
        ByteTerm("request table", entries * ROW_ENTRY_BYTES),
        ByteTerm("scratch of request rows", budget.row_count * budget.row_scratch_bytes),
        ByteTerm("scratch", budget.scratch_bytes),
    )


def _floor_pages(plan: KVStoragePlan, budget: StorageBudget) -> list[int]:
    """Pages per band that must fit, from low to high; none of full attention."""
    pages = [request_pages(plan, sub_pool, budget.row_tokens) for sub_pool in plan.sub_pools]
    if isinstance(budget.state, StateSlots):
        pages[0] = budget.state.count
    return pages


def _empty_chain(plan: KVStoragePlan, arena: Arena) -> ChainView:
    """What a chain allocator tells of itself before its first take."""
    wall_of: Mapping[Placement, Callable[[int], int]] = {
        Placement.GROWS_UP: arena.first_page,
        Placement.FLOATS: lambda page_bytes: 0,
        Placement.GROWS_DOWN: arena.end_page,
    }
    bands = []
    for sub_pool, placement in zip(plan.sub_pools, plan.placements, strict=True):
        wall = wall_of[placement](sub_pool.page_bytes)
        bands.append(BandView(sub_pool.page_bytes, wall, wall, wall, 0, 0, 0))
    return ChainView(arena.sink_bytes, arena.total_bytes, tuple(bands))


def _state_slots(plan: KVStoragePlan, budget: StorageBudget, view: ChainView) -> int:
    """Slots to size for; 0 without state.  The floor is known to fit `view`."""
    floor = _floor_pages(plan, budget)
    match budget.state:
        case None:
            return 0
        case StateSlots(count):
            return count
        case StateShare(percent):
            share_bytes = (view.total_bytes - view.sink_bytes) * percent // 100
            share = share_bytes // plan.sub_pools[0].page_bytes
            return min(max(share, floor[0]), most_pages(view, floor, 0))
        case _:
            assert_never(budget.state)


def _runnable(plan: KVStoragePlan, budget: StorageBudget, slots: int) -> int:
    """Requests for which there are rows and state slots."""
    if budget.state is None:
        return budget.row_count
    slots_each = request_pages(plan, plan.sub_pools[0], budget.row_tokens)
    return min(budget.row_count, slots // slots_each)


def _targets(
    plan: KVStoragePlan, budget: StorageBudget, slots: int, runnable: int, full_pages: int
) -> list[int]:
    """Pages per band, from low to high; none is fewer where `full_pages` is more."""
    pages = []
    for sub_pool in plan.sub_pools:
        match sub_pool.kind:
            case SubPoolKind.STATE:
                pages.append(slots)
            case SubPoolKind.WINDOW:
                retained = runnable * request_pages(plan, sub_pool, budget.row_tokens)
                pages.append(min(full_pages, retained))
            case SubPoolKind.FULL:
                pages.append(full_pages)
            case _:
                assert_never(sub_pool.kind)
    return pages


def _band_size(sub_pool: SubPool, pages: int) -> BandSize:
    page_slots = sub_pool.page_bytes // sub_pool.entry_bytes
    return BandSize(sub_pool.name, pages, pages * page_slots, pages * sub_pool.page_bytes)


def _sum(terms: Sequence[ByteTerm]) -> int:
    return sum(term.bytes for term in terms)


def _check_state(plan: KVStoragePlan, budget: StorageBudget) -> None:
    """Refuse a budget that says nothing of the plan's state, too little, or too much."""
    state = plan.sub_pools[0]
    if (state.kind is SubPoolKind.STATE) != (budget.state is not None):
        raise SizingError(
            f"the budget's state is {budget.state} and the plan's sub-pools are "
            f"{', '.join(plan.tree_slots)}; allowed: StateSlots or StateShare for a plan with "
            "state, None for one without"
        )
    least = request_pages(plan, state, budget.row_tokens)
    if isinstance(budget.state, StateSlots) and budget.state.count < least:
        raise SizingError(
            f"the budget's state is {budget.state}; allowed: {least} or more, what one request "
            f"needs of sub-pool {state.name!r}"
        )


def _refuse_below_floor(total_bytes: int, floor: Sequence[ByteTerm]) -> None:
    floor_bytes = _sum(floor)
    if total_bytes >= floor_bytes:
        return
    terms = "; ".join(f"{term.name}: {term.bytes}" for term in floor)
    raise SizingError(
        f"a budget of {total_bytes} bytes is below the floor of {floor_bytes} bytes, which is one "
        f"request at batch size 1 without its full-attention tokens ({terms}); allowed: "
        f"{floor_bytes} bytes or more; add {floor_bytes - total_bytes} bytes or lower a term"
    )
