"""An explanation in words: the cause, the place, both accesses, and what the missing edge changes.

The proof is the last part: what the same operations and many other seeds show once the edge is
there.  How that is found out is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.case import Case
from harness.device.clock import LANES
from harness.device.launches import role_of
from harness.report.edge import EdgeRule
from harness.report.story import Story
from harness.report.text import describe, step_text, wrapped
from harness.report.touched import touched_text
from harness.sweep.explaining import EdgeProof, drawn_for
from harness.violation import Violation
from harness.words import counted

OTHERS_MAX = 3
FACT_INDENT = " " * 9


def story_lines(story: Story) -> list[str]:
    """The failure as its replay showed it."""
    violation = story.violation
    lines = wrapped("cause        ", story.violation.what)
    lines += wrapped("promise      ", story.promise)
    if story.rule:
        lines += wrapped("here         ", story.rule)
    for side in story.sides:
        ran = ", ".join(dict.fromkeys(side.ran))
        where = f"{side.note.kind}, {step_text(side.note)}, {side.lane}; {ran}"
        lines += wrapped(f"{side.when:13}", where)
        lines += wrapped(" " * 13, touched_text(story, side))
        lines += wrapped(" " * 13, f"op {side.launch.operation}  {side.operation}")
    if violation.missing_edge:
        lines += wrapped("missing edge ", violation.missing_edge)
        lines += wrapped(" " * 13, story.order)
    for place, entries in story.followed:
        lines += ["", f"history of {place.title}{'' if entries else ': no operation touched it'}"]
        for at, facts in entries:
            operation = describe(story.recording.frames[at].operation)
            lines += wrapped(f"{story.marks.get(at, ''):>3} {at:4} ", operation)
            for fact in facts:
                lines += wrapped(f"{FACT_INDENT}- ", fact)
    if story.differences:
        lines += ["", "where the ranks differ"]
        for name, ranks in story.differences:
            both = "; ".join(f"rank {rank}: {text}" for rank, text in enumerate(ranks))
            lines += wrapped(f"{FACT_INDENT}- ", f"{name}: {both}")
    return lines if _is_placed(story) else lines + _last_lines(story)


def _is_placed(story: Story) -> bool:
    """Whether there is a history, or a difference of ranks, to look at."""
    return bool(story.differences) or any(follow.entries for follow in story.followed)


def _last_lines(story: Story) -> list[str]:
    """Where a failure is nowhere: what its operation did, what it had to go by, and the bands."""
    at = len(story.recording.frames) - 1
    frame = story.recording.frames[at]
    lines = ["", f"what its operation did{'' if story.deeds else ': nothing'}"]
    lines += wrapped(f"{story.marks.get(at, ''):>3} {at:4} ", describe(frame.operation))
    for text in story.deeds:
        lines += wrapped(f"{FACT_INDENT}- ", text)
    lines += _actor_lines(story)
    lines += ["", "bands behind it"]
    for row in story.bands:
        low, high = row.span
        text = (
            f"{row.name}: pages {low}..{high}: {row.live} live, {counted(row.holes, 'hole')},"
            f" {row.pending} pending, {row.fixed} fixed; {row.gap_bytes} bytes free behind it"
        )
        lines += wrapped(f"{FACT_INDENT}- ", text)
    return lines


def _actor_lines(story: Story) -> list[str]:
    """Requests and transfers, each with what there is to say of it."""
    lines = []
    for title, head, rows in story.actors:
        lines += ["", f"{title[0].lower()}{title[1:]} before it"]
        for name, *cells in rows:
            told = zip(head[1:], cells, strict=True)
            text = "; ".join(f"{what}: {cell}" for what, cell in told if cell)
            lines += wrapped(f"{FACT_INDENT}- ", f"{name}: {text}")
    return lines


def no_edge_lines(story: Story) -> list[str]:
    """Why nothing is put to the test, and what there is to look at instead."""
    shown = []
    if any(follow.entries for follow in story.followed):
        shown.append("the history")
    if story.differences:
        shown.append("where the ranks differ")
    there = " and ".join(shown or ["what its operation did and the bands behind it"])
    return [
        "",
        *wrapped(
            "inserted     ",
            f"nothing: {story.violation.check} is no promise of order, so no edge is missing;"
            f" look at what the sentence compares, and at {there}",
        ),
    ]


def edge_lines(story: Story, proof: EdgeProof) -> list[str]:
    """What the same operations show with the edge."""
    return [
        "",
        *wrapped(
            "inserted     ",
            f"a wait for the earlier access: the same operations {became(story, proof.once)}",
        ),
        *wrapped(
            "by rule      ",
            f"{rule_text(proof.rule)}: the same operations {became(story, proof.by_rule)}",
        ),
    ]


def rule_text(rule: EdgeRule) -> str:
    """The edge for all accesses of its kinds."""
    any_stream, each_stream = _streams(rule.role, "any"), _streams(rule.awaited_role, "each")
    return (
        f"before every {rule.kind} of {any_stream}, it waits for the last"
        f" {rule.awaited_kind} of {each_stream}"
    )


def _streams(role: str, word: str) -> str:
    """All streams of a role, with a word for where they are several."""
    lanes = [lane for lane in range(LANES) if role_of(lane) == role]
    return f"{word if len(lanes) > 1 else 'the'} {role} stream"


def became(story: Story, found: Sequence[Violation]) -> str:
    """What operations do with the edge, as the end of a sentence."""
    signatures = [violation.signature for violation in found]
    if not signatures:
        return "no longer fail"
    if story.violation in found:
        return "still fail: the edge is not the cause"
    if story.violation.signature in signatures:
        again = found[signatures.index(story.violation.signature)]
        return f"get past these two accesses, and fail alike at the next: {again.what}"
    return f"no longer fail in this way, but in another: {found[0].what}"


def seed_lines(story: Story, proof: EdgeProof) -> list[str]:
    """What further seeds show with the edge."""
    case, count, asked = story.case, proof.count, len(proof.seeds)
    cut = count.tried + count.deaths < asked
    text = (
        f"{f'cut short: {count.tried} of {asked}' if cut else count.tried} of scenario"
        f" {case.scenario} from {proof.seeds.start} on, {proof.operations} operations each,"
        f" planted fault {case.plant or 'none'}: {count.before} fail in this way without the edge,"
        f" {count.after} with it"
    )
    lines = wrapped("seeds        ", text) + wrapped(" " * 13, drawn_text(case))
    if count.deaths:
        lines += wrapped(" " * 13, f"{count.deaths} ended their process")
    others = sum(count.otherwise.values())
    if others:
        lines += wrapped(" " * 13, f"{others} fail in another way with it, most often as")
        for signature, times in count.otherwise.most_common(OTHERS_MAX):
            lines += wrapped(f"{' ' * 13}- ", f"{times} x {signature}")
    return lines


def drawn_text(case: Case) -> str:
    """How further seeds are drawn, and whether the case's own was drawn alike."""
    drawn = drawn_for(case)
    ranks = counted(drawn.ranks or case.scenario_data.ranks, "rank")
    how = f"strategy {drawn.strategy}, {ranks}"
    if case.drawn is None:
        return f"drawn by {how}; the case does not say how its own seed was drawn"
    if drawn.traffic:
        return (
            f"drawn by {how}, as the case's own, but its requests were those recorded in"
            f" {drawn.traffic}, which a case does not hold"
        )
    return f"drawn as the case's own: {how}"


def verdict_lines(story: Story, proof: EdgeProof) -> list[str]:
    """What it all comes to."""
    return wrapped("verdict      ", verdict(story, proof))


def verdict(story: Story, proof: EdgeProof) -> str:
    """What the same operations and the figures amount to, in a sentence, and never to more."""
    count = proof.count
    if _fails_alike(story, proof.by_rule):
        return "the edge is not all of it: with it, the same operations still fail in this way"
    if count.after:
        return "the edge is not all of it: some seeds still fail in this way"
    if not proof.seeds:
        return "with the edge, the same operations do not fail in this way; no seed was tried"
    if not count.before:
        return "no seed that was tried fails in this way without the edge, so they prove nothing"
    if proof.left:
        return (
            f"of {counted(count.before, 'seed')} that failed in this way without the edge, none"
            f" does with it; of {len(proof.seeds)}, {proof.left} did not run to the end and prove"
            f" nothing"
        )
    return "the edge is the cause: with it, no seed fails in this way"


def _fails_alike(story: Story, found: Sequence[Violation]) -> bool:
    return story.violation.signature in [violation.signature for violation in found]


def explain_record(story: Story, proof: EdgeProof | None) -> dict[str, object]:
    """The last line for programs; `proof` is None where no edge is missing."""
    record: dict[str, object] = {
        "command": "explain",
        "fails": True,
        "signature": story.violation.signature,
        "cause": story.violation.what,
        "missing_edge": story.violation.missing_edge,
        "accesses": [
            msgspec.structs.asdict(side.note)
            | {"when": side.when, "touched": touched_text(story, side)}
            for side in story.sides
        ],
        "places": [follow.place.title for follow in story.followed],
    }
    if proof is not None:
        count = proof.count
        record |= {
            "gone_with_the_edge": not _fails_alike(story, proof.once),
            "rule": rule_text(proof.rule),
            "gone_with_the_rule": not _fails_alike(story, proof.by_rule),
            "verdict": verdict(story, proof),
            "seeds": {
                "drawn": drawn_text(story.case),
                "asked": len(proof.seeds),
                "tried": count.tried,
                "failing_without_the_edge": count.before,
                "failing_with_the_edge": count.after,
                "failing_otherwise": sum(count.otherwise.values()),
                "deaths": count.deaths,
            },
        }
    return record


def missed_record(case: Case) -> dict[str, object]:
    """The last line for programs where a case does not fail as it was stored."""
    return {"command": "explain", "fails": False, "signature": case.violation.signature}
