"""From the layers of a model to the sub-pools of one arena, in chain order.

The lifetime alone decides which sub-pool a part joins: it also settles the unit of
allocation, a page of tokens for attention and one slot for state.  Entries that die
together can share a page, so parts of equal lifetime lie side by side in every
entry, and one page holds that run of tokens for all of them.

The plan is a pure function of the declaration and the page size.  It does not
know how many bytes there are, nor how many pages a sub-pool will have.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import NamedTuple, assert_never

from unikv.arguments import check_figure
from unikv.declare import (
    FullLifetime,
    Geometry,
    Layer,
    Lifetime,
    ModelDeclaration,
    Part,
    StateLifetime,
    WindowLifetime,
)
from unikv.errors import PlanError

__all__ = ["KVStoragePlan", "Placement", "SubPool", "SubPoolKind", "plan_kv_storage"]


class SubPoolKind(Enum):
    """What a sub-pool keeps, which settles how its pages are named and when they die."""

    FULL = "full"  # mints the virtual pages that requests hold
    WINDOW = "window"  # binds its pages to those of the full sub-pool
    STATE = "state"  # slots in an id space of its own


class Placement(Enum):
    """How a band may extend in the arena; its position in the chain decides."""

    GROWS_UP = "grows up"  # from the low end
    FLOATS = "floats"
    GROWS_DOWN = "grows down"  # from the high end


@dataclass(frozen=True, slots=True, kw_only=True)
class SubPool:
    """The parts that share pages: one lifetime, one geometry, any number of layers."""

    name: str  # "full", "window<tokens>" or "state"; no two in a plan are equal
    kind: SubPoolKind
    window: int | None  # tokens; None unless the kind is WINDOW
    layers: tuple[int, ...]  # of the target, ascending; empty for a draft's own window
    draft_layers: tuple[int, ...]  # numbered apart from the target's, ascending
    geometry: Geometry  # of one layer
    entry_bytes: int  # one token, or one state slot, over all layers and draft layers
    page_bytes: int  # one page; a page of state is one slot
    checkpoint_interval: int | None = None  # tokens; only ever set for STATE

    def __post_init__(self) -> None:
        layer_count = len(self.layers) + len(self.draft_layers)
        assert layer_count > 0
        assert self.entry_bytes == self.geometry.entry_bytes * layer_count
        assert self.page_bytes % self.entry_bytes == 0
        assert (self.window is not None) == (self.kind is SubPoolKind.WINDOW)
        assert self.checkpoint_interval is None or self.kind is SubPoolKind.STATE


@dataclass(frozen=True, slots=True, kw_only=True)
class KVStoragePlan:
    """The sub-pools of one arena, and the order in which the prefix tree keeps them.

    `sub_pools` is the chain from low bytes to high: state, windows from the longest,
    full.  `tree_slots` names every sub-pool once: full, the target's primary window,
    the remaining windows from the longest, state.

    The primary window is the longest window of the *target*.  It comes first among
    the windows also where a fused draft brings a longer one, because what reads
    "the window" of a model must not change its meaning when a draft is added.
    """

    sub_pools: tuple[SubPool, ...]
    tree_slots: tuple[str, ...]
    page_size: int  # tokens, the same for every sub-pool that holds tokens

    def __post_init__(self) -> None:
        names = [sub_pool.name for sub_pool in self.sub_pools]
        assert len(set(names)) == len(names)
        assert sorted(self.tree_slots) == sorted(names)
        assert [s.kind for s in self.sub_pools].count(SubPoolKind.FULL) == 1
        assert self.owner.kind is SubPoolKind.FULL
        for sub_pool in self.sub_pools:
            page_entries = 1 if sub_pool.kind is SubPoolKind.STATE else self.page_size
            assert sub_pool.page_bytes == sub_pool.entry_bytes * page_entries

    @property
    def owner(self) -> SubPool:
        """The full-attention sub-pool, whose virtual pages the requests hold."""
        return self.sub_pools[-1]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How each of `sub_pools` extends.  (len(sub_pools),)

        The owner is always last, so a plan of one sub-pool grows down.
        """
        if len(self.sub_pools) == 1:
            return (Placement.GROWS_DOWN,)
        floats = (Placement.FLOATS,) * (len(self.sub_pools) - 2)
        return (Placement.GROWS_UP, *floats, Placement.GROWS_DOWN)

    def sub_pool(self, name: str) -> SubPool:
        """The sub-pool called `name`.

        Raises:
            PlanError: if there is none, with the names there are.
        """
        for sub_pool in self.sub_pools:
            if sub_pool.name == name:
                return sub_pool
        raise PlanError(f"no sub-pool is named {name!r}; allowed: {', '.join(self.tree_slots)}")


def plan_kv_storage(declaration: ModelDeclaration, page_size: int) -> KVStoragePlan:
    """Sub-pools for every part of `declaration`, draft layers included.

    Args:
        declaration: the model; its figures are already known to be possible.
        page_size: tokens in a page of every sub-pool that holds tokens.

    Returns:
        A plan in which each part of each layer belongs to exactly one sub-pool.

    Raises:
        PlanError: if the page size is no int of one token or more; if no target layer has full
            attention; if two geometries, or two checkpoint intervals, would share a
            sub-pool; if a draft has state where the target has no state with a
            checkpoint policy.  The message names the model and the layers.
    """
    check_figure(PlanError, f"{declaration.name}: page_size in tokens", page_size, 1)
    members = tuple(_members(declaration))
    _refuse_missing_owner(declaration.name, members)
    _refuse_unplaced_draft_state(declaration.name, members)
    _refuse_mixed_checkpoints(declaration.name, members)
    groups = _by_lifetime(members)
    for lifetime, group in groups.items():
        _refuse_mixed_geometry(declaration.name, lifetime, group)
    chain = sorted(groups, key=_chain_rank)
    return KVStoragePlan(
        sub_pools=tuple(_sub_pool(lifetime, groups[lifetime], page_size) for lifetime in chain),
        tree_slots=_tree_slots(chain, members),
        page_size=page_size,
    )


class _Side(Enum):
    TARGET = "layer"
    DRAFT = "draft layer"


class _Member(NamedTuple):
    """One part, and the layer that stores it."""

    side: _Side
    layer: int
    part: Part


def _members(declaration: ModelDeclaration) -> Iterator[_Member]:
    sides: Iterable[tuple[_Side, Sequence[Layer]]] = (
        (_Side.TARGET, declaration.layers),
        (_Side.DRAFT, declaration.draft_layers),
    )
    for side, layers in sides:
        for number, layer in enumerate(layers):
            for part in layer.parts:
                yield _Member(side, number, part)


def _by_lifetime(members: Iterable[_Member]) -> dict[Lifetime, list[_Member]]:
    groups: dict[Lifetime, list[_Member]] = {}
    for member in members:
        groups.setdefault(member.part.lifetime, []).append(member)
    return groups


def _sub_pool(lifetime: Lifetime, members: Sequence[_Member], page_size: int) -> SubPool:
    geometry = members[0].part.geometry
    entry_bytes = geometry.entry_bytes * len(members)
    kind = _kind(lifetime)
    return SubPool(
        name=_name(lifetime),
        kind=kind,
        window=lifetime.window if isinstance(lifetime, WindowLifetime) else None,
        layers=_layers_on(_Side.TARGET, members),
        draft_layers=_layers_on(_Side.DRAFT, members),
        geometry=geometry,
        entry_bytes=entry_bytes,
        page_bytes=entry_bytes if kind is SubPoolKind.STATE else entry_bytes * page_size,
        checkpoint_interval=(
            lifetime.checkpoint_interval if isinstance(lifetime, StateLifetime) else None
        ),
    )


def _kind(lifetime: Lifetime) -> SubPoolKind:
    match lifetime:
        case FullLifetime():
            return SubPoolKind.FULL
        case WindowLifetime():
            return SubPoolKind.WINDOW
        case StateLifetime():
            return SubPoolKind.STATE
        case _:
            assert_never(lifetime)


def _name(lifetime: Lifetime) -> str:
    if isinstance(lifetime, WindowLifetime):
        return f"window{lifetime.window}"
    return _kind(lifetime).value


def _chain_rank(lifetime: Lifetime) -> tuple[int, int]:
    """Sorts lifetimes into chain order: state, windows from the longest, full."""
    match lifetime:
        case StateLifetime():
            return (0, 0)
        case WindowLifetime():
            return (1, -lifetime.window)
        case FullLifetime():
            return (2, 0)
        case _:
            assert_never(lifetime)


def _tree_slots(chain: Sequence[Lifetime], members: Iterable[_Member]) -> tuple[str, ...]:
    of_target = {m.part.lifetime for m in members if m.side is _Side.TARGET}
    windows = [lifetime for lifetime in chain if isinstance(lifetime, WindowLifetime)]
    primary = [lifetime for lifetime in windows if lifetime in of_target][:1]
    others = [lifetime for lifetime in windows if lifetime not in primary]
    states = [lifetime for lifetime in chain if isinstance(lifetime, StateLifetime)]
    return (_name(FullLifetime()), *map(_name, primary), *map(_name, others), *map(_name, states))


def _refuse_missing_owner(model: str, members: Sequence[_Member]) -> None:
    if any(m.side is _Side.TARGET and m.part.lifetime == FullLifetime() for m in members):
        return
    held = "; ".join(
        f"{_name_layers(group)} {_verb(group, 'store')} {lifetime}"
        for lifetime, group in _by_lifetime(members).items()
    )
    raise PlanError(
        f"{model}: no layer of the target has full attention, so nothing mints virtual pages; "
        f"{held}; allowed: full attention in 1 layer of the target or more"
    )


def _refuse_unplaced_draft_state(model: str, members: Sequence[_Member]) -> None:
    states = [m for m in members if isinstance(m.part.lifetime, StateLifetime)]
    draft = [m for m in states if m.side is _Side.DRAFT]
    target = [m for m in states if m.side is _Side.TARGET]
    if not draft or any(m.part.lifetime != StateLifetime(None) for m in target):
        return
    if target:
        found = f"{_name_layers(target)} {_verb(target, 'store')} {StateLifetime(None)}"
    else:
        found = "the target stores no state"
    raise PlanError(
        f"{model}: {_name_layers(draft)} {_verb(draft, 'store')} state, but {found}; allowed: "
        "draft state beside target state with a checkpoint_interval of 1 token or more"
    )


def _refuse_mixed_checkpoints(model: str, members: Sequence[_Member]) -> None:
    states = [m for m in members if isinstance(m.part.lifetime, StateLifetime)]
    groups = _by_lifetime(states)
    if len(groups) < 2:
        return
    found = " and ".join(
        f"{_name_layers(group)} {_verb(group, 'store')} {lifetime}"
        for lifetime, group in groups.items()
    )
    raise PlanError(
        f"{model}: {found}; allowed: one checkpoint_interval, because one slot holds the state "
        "of all layers at the same token; give these layers the same one"
    )


def _refuse_mixed_geometry(model: str, lifetime: Lifetime, members: Sequence[_Member]) -> None:
    groups: dict[Geometry, list[_Member]] = {}
    for member in members:
        groups.setdefault(member.part.geometry, []).append(member)
    if len(groups) < 2:
        return
    found = " and ".join(
        f"{_name_layers(group)} {_verb(group, 'store')} {geometry}"
        for geometry, group in groups.items()
    )
    raise PlanError(
        f"{model}: sub-pool {_name(lifetime)!r} would hold {len(groups)} geometries: {found}; "
        "allowed: exactly one, draft layers included; make them equal"
    )


def _layers_on(side: _Side, members: Iterable[_Member]) -> tuple[int, ...]:
    return tuple(member.layer for member in members if member.side is side)


def _verb(members: Sequence[_Member], verb: str) -> str:
    return verb if len(members) > 1 else f"{verb}s"


def _name_layers(members: Iterable[_Member]) -> str:
    """The layers in words, such as "layers 0, 1, 4 to 9 and draft layer 0"."""
    held = tuple(members)
    named = ((side, _layers_on(side, held)) for side in _Side)
    return " and ".join(
        f"{side.value}{'s' if len(layers) > 1 else ''} {_runs(layers)}"
        for side, layers in named
        if layers
    )


def _runs(numbers: Sequence[int]) -> str:
    """Ascending numbers, with every run of three or more written "first to last"."""
    words: list[str] = []
    # Number minus rank is constant exactly along a run.
    for _, ranked in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in ranked]
        if len(run) > 2:
            words.append(f"{run[0]} to {run[-1]}")
        else:
            words.extend(map(str, run))
    return ", ".join(words)
