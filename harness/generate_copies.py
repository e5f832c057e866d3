"""Which part of which copy comes next: the generator's choices about the host tier."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.choices import Choices, one_of
from harness.ops import (
    Acknowledge,
    BeginBackup,
    BeginLoad,
    CancelCopy,
    DropSaved,
    NameRows,
    Operation,
    SubmitCopy,
)
from harness.world import World

COPY_NAMES = frozenset(
    {
        "begin_backup",
        "begin_load",
        "name_rows",
        "submit_copy",
        "acknowledge",
        "cancel_copy",
        "drop_saved",
    }
)


class CopyMakers:
    """Draws the parts of backups and loads."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._names = 0

    def by_name(self) -> Mapping[str, Callable[[World], Operation | None]]:
        """A maker for each name; it gives None where its operation makes no sense now."""
        return {
            "begin_backup": self._begin_backup,
            "begin_load": self._begin_load,
            "name_rows": self._name_rows,
            "submit_copy": self._submit_copy,
            "acknowledge": self._acknowledge,
            "cancel_copy": self._cancel_copy,
            "drop_saved": self._drop_saved,
        }

    def _name(self) -> str:
        self._names += 1
        return f"copy{self._names}"

    def _begin_backup(self, world: World) -> Operation | None:
        ready = [key for key in world.prefixes if key not in world.host.saved]
        blocks = one_of(self._choices, ready)
        return BeginBackup(self._name(), blocks) if blocks else None

    def _begin_load(self, world: World) -> Operation | None:
        """Mostly what somebody in the queue asks for."""
        saved = world.host.saved.items()
        ready = [key for key, part in saved if not part.backup and key not in world.prefixes]
        prompts = [request.blocks for request in world.queued.values()]
        wanted = [key for key in ready if any(p[: len(key)] == key for p in prompts)]
        blocks = one_of(self._choices, wanted if wanted and self._choices.below(4) else ready)
        return BeginLoad(self._name(), blocks) if blocks else None

    def _name_rows(self, world: World) -> Operation | None:
        ready = [name for name, load in world.host.loads.items() if not load.is_named]
        name = one_of(self._choices, ready)
        return NameRows(name) if name else None

    def _submit_copy(self, world: World) -> Operation | None:
        name = one_of(self._choices, world.host.unsubmitted())
        return SubmitCopy(name) if name else None

    def _acknowledge(self, world: World) -> Operation | None:
        host, device = world.host, world.device
        ready = [name for name in host.submitted() if device.has_ended(host.event_of(name))]
        name = one_of(self._choices, ready)
        return Acknowledge(name) if name else None

    def _cancel_copy(self, world: World) -> Operation | None:
        name = one_of(self._choices, world.host.unsubmitted())
        return CancelCopy(name) if name else None

    def _drop_saved(self, world: World) -> Operation | None:
        saved = world.host.saved.items()
        ready = [key for key, part in saved if not part.backup and not part.readers]
        blocks = one_of(self._choices, ready)
        return DropSaved(blocks) if blocks else None
