"""What a trace assumes of its engine, in a sentence: figures to read its operations by."""

from __future__ import annotations

from harness.scenario import Commit, Setup
from harness.words import counted

_COMMITS = {
    Commit.IN_STEP: "a step commits behind its body, on its stream",
    Commit.SIDE_STREAM: "a step commits on a side stream",
    Commit.RELAYED: "a step commits once another stage has relayed what it accepted",
}
"""Where a forward leaves states and row memory, if not in its body."""


def setup_text(setup: Setup) -> str:
    """The engine and the sizes of its storage; what is as plain as it can be is left out."""
    stream = "forward" if setup.overlap else "schedule"
    words = [f"steps run on the {stream} stream, {setup.steps_in_flight} unprocessed at most"]
    if setup.pipeline:
        words.append("an iteration launches a step and then processes an earlier one")
    words.append(f"a page holds {counted(setup.page_slots, 'token')}")
    tokens = counted(setup.block_pages * setup.page_slots, "token")
    words.append(f"a block of a prompt {tokens}")
    words += [
        f"the window of {part.name} is {counted(part.window, 'token')}"
        for part in setup.bands
        if part.kind == "window"
    ]
    if setup.checkpoints.interval and any(part.kind == "state" for part in setup.bands):
        words.append(f"a state may be kept every {counted(setup.checkpoints.interval, 'token')}")
    if setup.backend.commit in _COMMITS:
        words.append(_COMMITS[setup.backend.commit])
    if setup.backend.captured:
        words.append("steps are captured graphs")
    if setup.layer_groups > 1:
        words.append(f"a page has {setup.layer_groups} layer groups")
    return "; ".join(words)
