"""Which part of which copy comes next: the generator's choices about the host tier."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.choices import Choices, one_of
from harness.ops import (
    Acknowledge,
    BeginBackup,
    BeginLoad,
    BeginResume,
    BeginSave,
    CancelCopy,
    DropSaved,
    NameRows,
    Operation,
    SubmitCopy,
)
from harness.requests import Request
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
        "begin_save",
        "begin_resume",
    }
)

COPY_CORE = frozenset({"begin_backup", "begin_load", "submit_copy"})
"""Without one of them nobody ever reads what a load has brought back."""


def reader_of_a_load(choices: Choices, world: World) -> Request | None:
    """Mostly, a queued request whose prompt begins with what a load brings back, if there is one.

    A prefix was loaded for whoever asks for it, and may be evicted before its turn in the queue.
    """
    loading = [load.blocks for load in world.host.loads.values()]
    if not loading or not choices.below(4):
        return None
    queued = world.queued.values()
    return one_of(choices, [r for r in queued if any(r.blocks[: len(b)] == b for b in loading)])


class CopyMakers:
    """Draws the parts of backups and loads.

    Args:
        choices: the only source of chance.
        waits: whether the scheduler, short of memory, asks for none now.
    """

    def __init__(self, choices: Choices, waits: Callable[[World], bool]) -> None:
        self._choices = choices
        self._waits = waits
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
            "begin_save": self._begin_save,
            "begin_resume": self._begin_resume,
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
        # A scheduler polls its own rank; whether the others are as far it learns when it asks.
        host, device = world.host, world.device
        ready = [name for name in host.submitted() if device.passed(0, host.event_of(name))]
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

    def _begin_save(self, world: World) -> Operation | None:
        ready = [name for name, request in world.running.items() if request.length]
        request = one_of(self._choices, ready)
        return BeginSave(self._name(), request) if request else None

    def _begin_resume(self, world: World) -> Operation | None:
        parked = world.host.parked.values()
        ready = [part.request for part in parked if part.is_filled and not part.load]
        request = one_of(self._choices, [name for name in ready if name])
        if request is None or self._waits(world):
            return None
        return BeginResume(self._name(), request)
