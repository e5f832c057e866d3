"""Content: every slot read holds what was last written to it, and all images agree at rest.

Program order is compared with truth when a step is launched; each rank's bytes are compared with
program order when the work starts and when it ends.
"""

from __future__ import annotations

from harness.scenario import CELL_BYTES
from harness.violation import AccessNote, Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Reads that went wrong on a rank, and images that differ at rest."""
    found = []
    for rank, launch, mismatch in world.device.bad_reads:
        found.append(
            Violation(
                check="content",
                what=f"rank {rank}: the {launch.kind} of operation {launch.operation} (step"
                f" {launch.step}) on the {launch.role} stream read other bytes at {mismatch.space}"
                f" {mismatch.unit} than program order puts there",
                detail=f"wrong bytes on a rank in {mismatch.space.rstrip('0123456789')}",
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
    entry = setup.entry_cells * CELL_BYTES
    if expected is None:
        world.truth.note(
            "initialised",
            "read before the first write",
            f"band {setup.name!r}: id {unit} on page {page} is read and was never written",
        )
        return
    slot = next(
        at // entry
        for at in range(0, len(expected), CELL_BYTES)
        if data[at : at + CELL_BYTES] != expected[at : at + CELL_BYTES]
    )
    blank = not any(expected[slot * entry : slot * entry + entry])
    world.truth.note(
        "initialised" if blank else "content",
        "slot promised as zeros" if blank else "wrong bytes in program order",
        f"band {setup.name!r}: slot {slot} of id {unit} on page {page} does not hold what was"
        " last written to it",
    )


def _images(world: World) -> list[Violation]:
    program = world.device.program
    found = []
    for rank, state in enumerate(world.device.ranks):
        image = state.image
        for space in ("arena", "maps", "rows", "staging"):
            if getattr(image, space) != getattr(program, space):
                found.append(
                    Violation(
                        check="content",
                        what=f"rank {rank}: at rest its {space} differ from program order",
                        detail=f"images differ at rest in {space}",
                        operation=world.device.operation,
                    )
                )
    return found
