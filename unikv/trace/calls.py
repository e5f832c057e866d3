"""The calls of a storage as data: their names, the shapes of their arguments and answers.

One table says what can be recorded, so a trace is decoded as strictly as it was written.  Events
have no value that could be written down: a trace names each by a number, and whoever performs the
calls makes events of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import countOf
from reprlib import repr as short
from typing import Annotated, Any, SupportsIndex, assert_never, get_args

from msgspec import Meta

from unikv.cache.host_tier import HostCopy
from unikv.device.port import Event, Stream
from unikv.errors import Shortage, UnikvError
from unikv.storage import KVStorage

MAX_BANDS = 64
_FURTHEST = 2**48

Number = Annotated[int, Meta(ge=-_FURTHEST, le=_FURTHEST)]
EventNumber = Annotated[int, Meta(ge=1, le=_FURTHEST)]
Numbers = list[Number]
PerBand = Annotated[list[Numbers], Meta(max_length=MAX_BANDS)]
PerBandAndRow = Annotated[list[list[Numbers]], Meta(max_length=MAX_BANDS)]
Name = Annotated[str, Meta(max_length=200)]
NumbersByBand = Annotated[list[tuple[Number, Numbers]], Meta(max_length=MAX_BANDS)]
EventCount = Annotated[int, Meta(ge=1, le=_FURTHEST)]
"""What a trace has of an answer of one event, or of a tuple of them."""

ANSWERED_ERRORS = (
    UnikvError,
    AssertionError,
    AttributeError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What a call may raise and a trace writes down; anything else ends the recording."""


class Part(Enum):
    """The object that a call is made on."""

    CHAIN = "chain"
    USERS = "users"
    REQUESTS = "requests"
    IDS = "ids"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class CallKind:
    """One public call of a storage.

    Attributes:
        part, method: what is called.
        arguments: a tuple type, which the arguments of a line must have.
        answer: the type of the answer in a line.
        events: the stream of the event that is the second argument; empty where there is none.
    """

    part: Part
    method: str
    arguments: Any
    answer: Any
    events: tuple[Stream, ...] = ()

    @property
    def name(self) -> str:
        """The call in a trace, `part.method`."""
        return f"{self.part.value}.{self.method}"


_C, _U, _R, _I, _H = Part.CHAIN, Part.USERS, Part.REQUESTS, Part.IDS, Part.HOST
_NONE = type(None)
_TAKEN = tuple[Numbers, Numbers]
_RECORD = tuple[Number, EventNumber, PerBand]
_COPY = tuple[PerBand, EventNumber]

CALLS: Mapping[str, CallKind] = {
    kind.name: kind
    for kind in (
        CallKind(_C, "fits", tuple[Number, Number], bool),
        CallKind(_C, "take", tuple[Number, Number], _TAKEN),
        CallKind(_C, "reserve", tuple[Number, Number], Numbers),
        CallKind(_C, "fits_load", tuple[Numbers], bool),
        CallKind(_C, "take_for_load", tuple[Numbers], tuple[Numbers, Numbers, NumbersByBand]),
        CallKind(_C, "free", tuple[Numbers], _NONE),
        CallKind(_C, "retire", tuple[Number, Numbers], _NONE),
        CallKind(_C, "free_slots", tuple[Numbers], _NONE),
        CallKind(_C, "launch_step", tuple[Number], _NONE),
        CallKind(_C, "record_step", _RECORD, _NONE, (Stream.FORWARD,)),
        CallKind(
            _C,
            "record_step_of_unknown_writes",
            tuple[Number, EventNumber],
            _NONE,
            (Stream.FORWARD,),
        ),
        CallKind(_C, "process_step", tuple[Number], _NONE),
        CallKind(_C, "prewarm", tuple[()], _NONE),
        CallKind(_C, "flush", tuple[Number], Number),
        CallKind(_C, "relieve", tuple[Number, Number], bool),
        CallKind(_C, "translate", tuple[Number, Numbers], Numbers),
        CallKind(_U, "name_reserved", tuple[Number, Numbers, Numbers], _NONE),
        CallKind(_U, "cancel_reservation", tuple[Number, Numbers], _NONE),
        CallKind(_U, "begin_backup", _COPY, Number, (Stream.BACKUP,)),
        CallKind(_U, "begin_load", _COPY, Number, (Stream.LOAD,)),
        CallKind(_U, "end_copy", tuple[Number], _NONE),
        CallKind(_U, "hold_receive", tuple[Name, PerBand], _NONE),
        CallKind(_U, "publish", tuple[Name, Name], NumbersByBand),
        CallKind(_U, "begin_send", tuple[Name, PerBand], _NONE),
        CallKind(_U, "isolate", tuple[Name], _NONE),
        CallKind(_U, "release", tuple[Name], _NONE),
        CallKind(_I, "writes", tuple[Numbers, Numbers], PerBand),
        CallKind(_I, "reads", tuple[list[Numbers], list[Numbers]], PerBandAndRow),
        CallKind(_I, "move_epochs", tuple[()], Numbers),
        CallKind(_R, "take", tuple[()], Number),
        CallKind(_R, "append", tuple[Number, Numbers], _NONE),
        CallKind(_R, "give_back", tuple[Number], _NONE),
        CallKind(_H, "begin_backup", tuple[Name, PerBand], HostCopy),
        CallKind(_H, "submit_backup", tuple[Name], EventCount),
        CallKind(_H, "begin_load", tuple[Name, HostCopy], _TAKEN),
        CallKind(_H, "name_rows", tuple[Name], _NONE),
        CallKind(_H, "submit_load", tuple[Name], EventCount),
        CallKind(_H, "order_forward", tuple[Stream, list[Name], Number], _NONE),
        CallKind(_H, "acknowledge", tuple[Name], _NONE),
        CallKind(_H, "cancel", tuple[Name], _NONE),
        CallKind(_H, "drop", tuple[HostCopy], _NONE),
        CallKind(_H, "in_flight", tuple[()], list[Name]),
    )
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call with its arguments in plain form; an event is its number."""

    kind: CallKind
    arguments: tuple[object, ...]

    def __str__(self) -> str:
        return f"{self.kind.name}({', '.join(map(repr, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: an answer in plain form, or the name of an error.

    Attributes:
        answer: numbers, words and lists of them; None where there is nothing to say.
        error: the error's type, for a shortage with its kind behind a colon; empty without one.
    """

    answer: object
    error: str = ""

    def __str__(self) -> str:
        return f"raises {self.error}" if self.error else f"answers {self.answer!r}"


def plain_arguments(kind: CallKind, given: Sequence[object]) -> tuple[object, ...]:
    """Arguments as numbers, words and lists.

    A call asks the exact type of what it is given, and a trace knows only the plain one.  So what
    would be read back as another type is refused here, or a replay would accept what the call
    refused.

    Raises:
        TypeError: if an argument is made of anything but ints, bools, strs and sequences of them,
            but for a `HostCopy` and a `Stream` where the call takes one.
    """
    values = list(given)
    for place, shape in enumerate(get_args(kind.arguments)[: len(values)]):
        value = values[place]
        if shape is HostCopy and type(value) is not HostCopy:
            raise TypeError(
                f"{short(value)} is a {type(value).__name__}; allowed: a HostCopy, as begin_backup"
                " answers it"
            )
        if shape is Stream and type(value) is Stream:
            values[place] = int(value)
    return tuple(map(_plain_argument, values))


def _plain_argument(value: object) -> object:
    if value is None or type(value) in (int, bool, str):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        # Most sequences are long ones of ids.
        if countOf(map(type, value), int) == len(value):
            return list(value)
        return [_plain_argument(item) for item in value]
    raise _not_plain(value)


def plain(value: object) -> object:
    """An answer as numbers, words and lists; mappings as pairs in the order of keys.

    Raises:
        TypeError: if it is made of anything else.
    """
    # Nearly everything is a number, and the questions below are slow ones to ask.
    if type(value) is int or value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return [[plain(key), plain(value[key])] for key in sorted(value)]
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    if isinstance(value, SupportsIndex):
        return operator.index(value)
    raise _not_plain(value)


def _not_plain(value: object) -> TypeError:
    what = f"{short(value)} is a {type(value).__name__}"
    return TypeError(f"{what}; a trace holds numbers, words and lists")


def plain_answer(kind: CallKind, answer: object) -> object:
    """An answer in plain form; of events, which have none, only how many there are.

    Raises:
        TypeError: as `plain`.
    """
    if kind.answer is EventCount:
        return len(answer) if isinstance(answer, tuple) else 1
    return plain(answer)


def error_name(error: BaseException) -> str:
    """How a trace names an error; its text may change from one build to the next."""
    name = type(error).__name__
    return f"{name}:{error.kind}" if isinstance(error, Shortage) else name


def part_of(storage: KVStorage, part: Part) -> object:
    """The object of a storage that calls of one part are made on."""
    match part:
        case Part.CHAIN:
            return storage.chain
        case Part.USERS:
            return storage.chain.users
        case Part.REQUESTS:
            return storage.requests
        case Part.IDS:
            return storage.ids
        case Part.HOST:
            return storage.host
        case _:
            assert_never(part)


class Performer:
    """Makes the calls of one trace on one storage.

    Law: one event of its own for each event number, made when the number is first met.

    Attributes:
        storage: what the calls are made on.
    """

    __slots__ = ("_events", "storage")

    def __init__(self, storage: KVStorage) -> None:
        self.storage = storage
        self._events: dict[object, Event] = {}

    def perform(self, call: Call) -> Outcome:
        """Make one call; errors of `ANSWERED_ERRORS` are outcomes too."""
        kind, arguments = call.kind, list(call.arguments)
        for stream in kind.events:
            if arguments[1] not in self._events:
                event = self.storage.chain.device.record_event(stream)
                self._events[arguments[1]] = event
            arguments[1] = self._events[arguments[1]]
        try:
            answer = getattr(part_of(self.storage, kind.part), kind.method)(*arguments)
            return Outcome(plain_answer(kind, answer))
        except ANSWERED_ERRORS as error:
            return Outcome(None, error_name(error))
