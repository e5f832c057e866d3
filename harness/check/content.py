"""Content: every slot read holds what was last written to it, and all images agree at rest.

Program order is compared with truth when a step is launched; each rank's bytes are compared with
program order when the work starts and when it ends.
"""

from __future__ import annotations

from harness.check import broken
from harness.requests import Prefix, Request
from harness.scenario import CELL_BYTES
from harness.violation import AccessNote, Violation, id_sites, page_sites
from harness.words import counted
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Reads that went wrong on a rank, and images that differ at rest."""
    found = []
    for rank, launch, space, _, place in world.device.bad_reads:
        found.append(
            Violation(
                check="content",
                what=f"rank {rank}: {launch.who} finds something else in {place} than program order"
                " puts there",
                detail=f"wrong bytes on a rank in {space.partition(':')[0]}",
                operation=world.device.operation,
                accesses=(
                    AccessNote(
                        kind=f"{launch.kind} read",
                        stream=launch.role,
                        operation=launch.operation,
                        step=launch.step,
                        holder="",
                    ),
                ),
            )
        )
    if world.at_rest:
        found += _images(world)
    return found


def compare_page(world: World, band: int, unit: int, page: int, data: bytes | bytearray) -> None:
    """Note where the bytes of a page that is read differ from what was last written to it."""
    setup = world.setup.bands[band]
    expected = world.truth.content[band][unit]
    groups = world.layout.layer_groups
    entry = setup.entry_cells * CELL_BYTES // groups
    if expected is None:
        world.truth.note(
            "initialised",
            "read before the first write",
            f"band {setup.name!r}: id {unit} on page {page} is read and was never written",
            page_sites(band, [page]),
        )
        return
    # A page holds its layer groups one after the other, each with an entry per slot.
    at = next(
        at
        for at in range(0, len(expected), entry)
        if data[at : at + entry] != expected[at : at + entry]
    )
    place = _slot(unit, at, len(expected) // groups, entry, groups)
    blank, found = not any(expected[at : at + entry]), data[at : at + entry]
    world.truth.note(
        "initialised" if blank else "content",
        "slot promised as zeros" if blank else "wrong bytes in program order",
        f"band {setup.name!r}: {place} on page {page} does not hold what was last written to it,"
        f" but {_whose(world, band, found)}",
        page_sites(band, [page]),
    )


def _slot(unit: int, at: int, group_bytes: int, entry: int, groups: int) -> str:
    """What to call the entry that begins at a byte of a page."""
    group, offset = divmod(at, group_bytes)
    layers = f" in layer group {group}" if groups > 1 else ""
    return f"slot {offset // entry} of id {unit}{layers}"


def _whose(world: World, band: int, found: bytes | bytearray) -> str:
    """Where bytes that are wrong where they are would be right, as the end of a sentence."""
    if not any(found):
        return "zeros"
    groups, entry = world.layout.layer_groups, len(found)
    for unit, expected in enumerate(world.truth.content[band]):
        for at in range(0, len(expected or b""), entry):
            if expected is not None and expected[at : at + entry] == found:
                return f"what {_slot(unit, at, len(expected) // groups, entry, groups)} must hold"
    return "what no slot of this band must hold now"


def compare_prefix(world: World, request: Request, prefix: Prefix) -> None:
    """Note where a cached prefix holds other tokens than the prompt that is admitted on it.

    Stamps say who wrote a page last, not for which tokens; this is what tells two prefixes apart.
    """
    block_pages = world.setup.block_pages
    for index, unit in enumerate(prefix.pages):
        if world.truth.tokens.get(unit) != request.blocks[: index // block_pages + 1]:
            world.truth.note(
                "content",
                "prefix of other tokens",
                f"{request.name} is admitted on id {unit}, which holds other tokens than its own",
                id_sites(world.owner_band, [unit]),
            )
            return
    wanted = (prefix.blocks, len(prefix.pages) * world.setup.page_slots)
    if prefix.slot and world.truth.state_tokens.get(prefix.slot) != wanted:
        other = _other_state(world, prefix.slot, wanted[1])
        world.truth.note(
            "content",
            "state of other tokens",
            f"{request.name} resumes after {counted(wanted[1], 'token')} of its prompt from id"
            f" {prefix.slot} of band {world.setup.bands[world.state_band].name!r}, which holds"
            f" {other}",
            id_sites(world.state_band, [prefix.slot]),
        )


def _other_state(world: World, slot: int, tokens: int) -> str:
    """Which state a slot holds in place of the one after so many tokens of a prompt."""
    known = world.truth.state_tokens.get(slot)
    if known is None:
        return "none that a step has left there"
    after = f"the state after {counted(known[1], 'token')}"
    return after if known[1] != tokens else f"{after} of another prompt"


def _images(world: World) -> list[Violation]:
    program = world.device.program
    found = []
    for rank, state in enumerate(world.device.ranks):
        image = state.image
        for space in ("arena", "maps", "rows", "row_memory", "staging", "host"):
            if getattr(image, space) != getattr(program, space):
                text = f"rank {rank}: at rest its {space} differ from program order"
                found.append(broken(world, "content", f"images differ at rest in {space}", text))
    return found
