"""The memory of request rows: what each must hold, and where a request hands it over.

A row changes hands at once, under the last forward of its holder.  Whoever is launched next has to
find nothing of that in it, and whoever gets back what it saved, that and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.device.memory import NEVER_WRITTEN
from harness.device.row_memory import BLANK, SavedRow
from harness.requests import Request
from harness.scenario import Setup
from harness.violation import Site

if TYPE_CHECKING:
    from harness.world import World


class RowBook:
    """Truth about row memory, learned from what was handed out, saved and restored.

    Attributes:
        is_kept: whether forwards use memory of rows, and the subject knows that.
        expected: per row, what the next forward of its holder must find.
        last_step: per row, the newest step that uses it.
        is_written: per row, whether it was reset or restored for its holder.
        saved: what each copy must hold.
        saved_from: the row that each was copied from.
        restored_from: by row, the one whose copy its holder has got back.
    """

    def __init__(self, setup: Setup, families: frozenset[str]) -> None:
        self.is_kept = setup.backend.row_memory and "rows" in families
        self.expected = [NEVER_WRITTEN] * setup.rows
        self.last_step = [0] * setup.rows
        self.is_written = [False] * setup.rows
        self.saved: dict[SavedRow, int] = {}
        self.saved_from: dict[SavedRow, int] = {}
        self.restored_from: dict[int, int] = {}

    def take(self, world: World, request: Request) -> None:
        """A request gets a row, whatever its last holder has left in it and still does there."""
        row = request.row = world.ask("take_row")
        if self.is_kept:
            # Whoever gives a row up comes back to what it held, whatever happens to this one first.
            copy = request.saved
            self.expected[row] = self.saved[copy] if isinstance(copy, SavedRow) else BLANK
            self.is_written[row] = False
            self.restored_from.pop(row, None)
            if self.last_step[row] > world.truth.processed_through and world.setup.overlap:
                world.probes["row_reused_under_its_last_forward"] += 1

    def give_back(self, world: World, request: Request) -> None:
        """A request gives its row back, maybe under a forward that uses it."""
        world.order_tables()
        world.ask("free_row", request.row)
        request.row = -1

    def reset_new(self, world: World) -> None:
        """Every launch resets the rows that were handed out since the one before."""
        for row in world.ask("reset_new_rows", world.forward_stream):
            self.is_written[row] = True
            world.probes["row_reset"] += 1

    def use(self, world: World, requests: Sequence[Request], step: int) -> list[tuple[int, int]]:
        """A forward over a batch finds the memory of its rows as it must be.

        Returns:
            Rows with what they hold, which the forward reads before it writes.
        """
        found = world.device.program.row_memory
        used = []
        for request in requests:
            row = request.row
            self.last_step[row] = step
            used.append((row, found[row]))
            if found[row] != self.expected[row]:
                self._note(world, request)
        return used

    def save(self, world: World, request: Request) -> None:
        """Copy the memory of a request's row away, if it is the request's yet."""
        row = request.row
        if request.saved is not None:
            return  # it gives up a row that its memory was never written back to
        if not self.is_written[row]:
            world.probes["paused_before_its_first_launch"] += 1
            return
        copy = request.saved = world.ask("save_row", row)
        self.saved_from[copy] = row
        self.saved[copy] = self.expected[row]
        if world.device.program.row_memory[row] != self.expected[row]:
            self._note(world, request)
        world.probes["row_saved"] += 1

    def restore(self, world: World, request: Request) -> None:
        """Write the memory that a request has saved into the row that it has now."""
        row, copy = request.row, request.saved
        assert isinstance(copy, SavedRow)
        if self.is_written[row]:
            world.probes["row_restored_after_a_reset"] += 1
        world.ask("restore_row", row, copy)
        self.expected[row] = self.saved.pop(copy)
        self.restored_from[row] = self.saved_from.pop(copy)
        self.is_written[row] = True
        request.saved = None
        world.probes["row_restored"] += 1

    def _note(self, world: World, request: Request) -> None:
        row = request.row
        wanted, found = self.expected[row], world.device.program.row_memory[row]
        is_blank, origin = wanted == BLANK, self.restored_from.get(row, row)
        world.truth.note(
            "initialised" if is_blank else "content",
            "row memory of an earlier holder" if is_blank else "row memory of another step",
            f"{request.name} finds in the memory of row {row} {_writer(found)}, and should find"
            f" {_writer(wanted)}",
            tuple(Site("row memory", -1, at) for at in dict.fromkeys((row, origin))),
        )


def _writer(content: int) -> str:
    """Who wrote the memory of a row, which holds twice the number of a step, and one more where a
    commit of its own did."""
    if content == NEVER_WRITTEN:
        return "what was there before anybody wrote it"
    if content == BLANK:
        return "what a reset leaves"
    return f"what {'the commit of ' if content % 2 else ''}step {content // 2} wrote"
