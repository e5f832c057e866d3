"""The conversation of `replay --step`: a line in, some lines out, so a file of lines is a script.

Where lines come from and go to is somebody else's: a terminal, a pipe, a test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import StringIO
from typing import Protocol

from rich import box
from rich.console import Console
from rich.table import Table as Drawing
from rich.text import Text

from harness.errors import InputError
from harness.report.text import describe, render
from harness.sweep.replay import CaseReplay
from harness.sweep.verdict import Exit
from harness.violation import seen
from harness.walk.tables import LISTS, RECORDS, Table, page
from harness.walk.walk import Walk

AROUND = 5
"""Operations that `list` shows before and behind the place."""

DRAWING_WIDTH = 160

HELP: Mapping[str, str] = {
    "next [N]": "apply one operation, or N",
    "back [N]": "take one back, or N: everything before is run again",
    "go N": "go to where operation N is applied; they count from 0, as in the reports",
    "failure": "go to where a promise is broken, or to the end",
    "list": "the operations around here",
    "report": "what is broken here, as a report",
    "bands, requests, steps, copies, transfers, prefixes, streams": "what there is now",
    "band NAME": "its claimed pages, and who holds them",
    "request NAME, step N, copy NAME, transfer NAME": "everything about one of them",
    "page BAND N": "everything about one page",
    "show ...": "the same as what follows it, as in show page BAND N",
    "help": "this list; n, b, g, f, l, r, p, h or ? and q stand for words, an empty line for next",
    "quit": "stop here; the end of the input does too",
}
"""Commands, each with what it does."""

LETTERS: Mapping[str, str] = {
    "n": "next",
    "b": "back",
    "g": "go",
    "f": "failure",
    "l": "list",
    "r": "report",
    "p": "page",
    "h": "help",
    "?": "help",
    "q": "quit",
}
"""What one character stands for; an empty line is `next`."""


class Talk(Protocol):
    """Somebody to talk to."""

    def say(self, line: str) -> None:
        """Print a line."""
        ...

    def ask(self, prompt: str) -> str | None:
        """A line from the other side; None when there will be no more."""
        ...


def walk_through(talk: Talk, subject: CaseReplay) -> Exit:
    """Walk along a case as the other side says.

    Returns:
        VIOLATION if a broken promise was seen on the way, MISSED if the end was reached without
        one, CLEAN if nobody went so far, NOTHING_RAN if nobody went anywhere.
    """
    walk = Walk(subject.stored, subject.plant)
    if subject.until is not None:
        walk.go(subject.until + 1)
    dialogue = _Dialogue(walk, subject)
    talk.say(f"{subject.title()}  walk: {subject.command()} --step  (help names the commands)")
    for part in dialogue.arrived().splitlines():
        talk.say(part)
    while True:
        line = talk.ask(dialogue.prompt())
        if line is None:
            break
        words = line.split() or ["next"]
        word, *arguments = words[1:] if words[0] == "show" and len(words) > 1 else words
        word = LETTERS.get(word, word)
        if word == "quit":
            break
        try:
            answer = dialogue.answer(word, arguments)
        except InputError as error:
            answer = f"error: {error}"
        for part in answer.splitlines():
            talk.say(part)
    return dialogue.verdict


class _Dialogue:
    """Answers commands.

    Attributes:
        verdict: what was seen so far.
    """

    def __init__(self, walk: Walk, subject: CaseReplay) -> None:
        self._walk = walk
        self._subject = subject
        self.verdict = Exit.NOTHING_RAN
        self._commands: Mapping[str, Callable[[list[str]], str]] = {
            "next": self._next,
            "back": self._back,
            "go": self._go,
            "failure": self._failure,
            "list": self._list,
            "report": self._report,
            "page": self._page,
            "help": lambda arguments: _help(),
            **{name: self._lister(name) for name in LISTS},
            **{name: self._teller(name) for name in RECORDS},
        }

    def answer(self, word: str, arguments: list[str]) -> str:
        """What a command says.

        Raises:
            InputError: if it is no command, or its arguments are none.
        """
        command = self._commands.get(word)
        if command is None:
            known = ", ".join([*self._commands, "quit"])
            raise InputError(f"{word!r}: want one of {known}; help says what they do")
        return command(arguments)

    def prompt(self) -> str:
        """Where we are, in a few characters."""
        return f"[{self._where()}] "

    def _where(self) -> str:
        """The operation that was applied last, by its number in the reports."""
        last = len(self._walk.operations) - 1
        return f"op {self._walk.at - 1} of {last}" if self._walk.at else f"before op 0 of {last}"

    def place(self) -> str:
        """The last operation, what came of it, and the next one."""
        walk = self._walk
        lines = [f"at {self._where()}"]
        if walk.at:
            done = describe(walk.operations[walk.at - 1])
            lines.append(f"  done  {walk.at - 1:4}  {done}: {walk.outcomes[-1].value}")
        for violation in walk.violations:
            lines.append(f"  BROKEN      {violation.check}: {violation.what}")
        if walk.at < len(walk.operations) and not walk.violations:
            lines.append(f"  next  {walk.at:4}  {describe(walk.operations[walk.at])}")
        if self._is_clean_end():
            lines.append(f"  no longer fails; stored: {self._subject.stored.violation.signature}")
        return "\n".join(lines)

    def _is_clean_end(self) -> bool:
        return self._walk.at == len(self._walk.operations) and not self._walk.violations

    def _go_to(self, at: int) -> str:
        self._walk.go(at)
        return self.arrived()

    def arrived(self) -> str:
        """What is seen on coming here."""
        if self._walk.violations:
            self.verdict = Exit.VIOLATION
        elif self._is_clean_end():
            self.verdict = Exit.MISSED
        elif self._walk.at and self.verdict is Exit.NOTHING_RAN:
            self.verdict = Exit.CLEAN
        return self.place()

    def _next(self, arguments: list[str]) -> str:
        return self._go_to(self._walk.at + _count("next", arguments))

    def _back(self, arguments: list[str]) -> str:
        return self._go_to(max(0, self._walk.at - _count("back", arguments)))

    def _go(self, arguments: list[str]) -> str:
        if not arguments:
            raise InputError("go: no number: want that of an operation; they count from 0")
        return self._go_to(_number("go", arguments) + 1)

    def _failure(self, arguments: list[str]) -> str:
        self._walk.go_to_failure()
        return self.arrived()

    def _list(self, arguments: list[str]) -> str:
        walk = self._walk
        low, high = max(0, walk.at - AROUND), min(len(walk.operations), walk.at + AROUND)
        lines = []
        for at in range(low, high):
            ended = f": {walk.outcomes[at].value}" if at < walk.at else ""
            mark = ">" if at == walk.at - 1 else " "
            lines.append(f"{mark} {at:5}  {describe(walk.operations[at])}{ended}")
        return "\n".join(lines)

    def _report(self, arguments: list[str]) -> str:
        violation = seen(self._walk.violations, self._subject.stored.violation.signature)
        if violation is None:
            return "nothing is broken here"
        return render(self._subject.stored, violation, self._subject.command())

    def _page(self, arguments: list[str]) -> str:
        if len(arguments) != 2:
            raise InputError(f"page: {' '.join(arguments)!r}: want a band and a number")
        name, *number = arguments
        return drawn(page(self._walk.world, name, _number("page", number)))

    def _lister(self, name: str) -> Callable[[list[str]], str]:
        return lambda arguments: drawn(LISTS[name](self._walk.world))

    def _teller(self, name: str) -> Callable[[list[str]], str]:
        def tell(arguments: list[str]) -> str:
            if len(arguments) != 1:
                raise InputError(f"{name}: {' '.join(arguments)!r}: want one name")
            return drawn(RECORDS[name](self._walk.world, arguments[0]))

        return tell


def drawn(table: Table) -> str:
    """A table as lines of text."""
    if not table.rows:
        return f"{table.title}: none"
    # Names come from a file, so nothing in them is markup.
    drawing = Drawing(box=box.SIMPLE)
    for header in table.headers:
        drawing.add_column(header, overflow="fold")
    for row in table.rows:
        drawing.add_row(*map(Text, row))
    sheet = StringIO()
    Console(file=sheet, width=DRAWING_WIDTH, color_system=None).print(drawing)
    lines = [line.rstrip() for line in sheet.getvalue().splitlines()]
    return "\n".join([table.title, *filter(None, lines)])


def _help() -> str:
    width = max(map(len, HELP))
    return "\n".join(f"{command:{width}}  {text}" for command, text in HELP.items())


def _count(place: str, arguments: list[str]) -> int:
    return _number(place, arguments) if arguments else 1


def _number(place: str, arguments: list[str]) -> int:
    if len(arguments) == 1 and arguments[0].isascii() and arguments[0].isdigit():
        return int(arguments[0][:9])
    raise InputError(f"{place}: {' '.join(arguments)!r}: want a whole number")
