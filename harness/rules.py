"""What a promise means for each kind of break: the one thing that should have held.

A promise is about many things; who reads a report wants the one that this failure is about, and why
the account that it is compared with is right.  Races need none: a missing edge says it all.
"""

from __future__ import annotations

from collections.abc import Mapping

RULES: Mapping[str, str] = {
    # assertion
    "answer of another type": "a take answers with the ids and slots that it hands out",
    "parked nowhere": "what a retracted request has run is kept by its copy until it resumes",
    "AssertionError in": "nothing that the allocator asserts fails in a legal call",
    "TransferError in": "a legal call finds the transfers that it is about",
    # capacity
    "chunk ends off the grid": "a chunk ends on a position where a state may be kept, or where"
    " the prompt ends",
    "held page moved without need": "rows that wait for a peer move only where no layout leaves"
    " them alone",
    "refusal with other figures": "a refusal that is right says what was asked for and how much"
    " of it is free",
    "refused bytes that are there": "a call is short of bytes only where no arrangement of all"
    " bands holds what they use and what is asked for",
    "refused host slots that are there": "a call is short of host slots only where fewer are free",
    "refused ids that are there": "a call is short of ids only where fewer are free",
    "refused for no transfer": "a call is refused for transfers only after a wait in vain, or"
    " where the board, or the quarantine of its peer, is full",
    "relief answers wrongly": "a relief says yes exactly where some arrangement of all bands"
    " holds the demand",
    "relief made no room": "after a yes of a relief the take needs no further move",
    "take of another size": "a take hands out as many as were asked for",
    "take refused after a yes": "a take right behind the question whether it fits is served after"
    " a yes and refused after a no",
    "take served after a no": "a take right behind the question whether it fits is served after"
    " a yes and refused after a no",
    "transfer with a peer in quarantine": "no transfer begins while the board, or the quarantine"
    " of its peer, is full",
    "wait for a failed transfer": "a transfer that has failed or was given up is stopped in the"
    " next round, and what waits for it goes on until there is proof, or gives up",
    "wait for an isolated transfer": "nobody waits for a transfer that was given up",
    "wait for more than has to move": "a call waits only for transfers of bands that have to move",
    "wait for quiet transfers": "a wait ends once every rank's engine has said that it is quiet",
    "wait given up early": "a wait is given up when the host's patience is at its end, not before",
    "wait that no layout needs": "a call waits for transfers only where no arrangement leaves"
    " their pages alone",
    "window rows beyond the price": "a request keeps no window row that neither its next token"
    " nor a resume at its last checkpoint attends: admission has not counted it",
    # conservation
    "counts": "a band's counters say what the states of its pages say",
    "frontier": "no free page lies at an edge that may move: the edge retreats at once",
    "live pages": "a page is live exactly while an id names it, by the map writes that were"
    " enqueued",
    "span": "every page inside a span is live, a hole, pending or fixed, and none outside it is",
    "spans cross": "spans lie behind the sink, in the order of the bands, and do not overlap",
    # content
    "backup of another page": "a backup copies the page of each id to the host slot that its"
    " begin has answered for that id",
    "load of another page": "a load brings each host slot to the page of the id that its begin"
    " has answered for that slot",
    "backup of wrong bytes": "a page that is backed up holds what was last written to it",
    "images differ at rest": "once everything has ended, every rank holds what program order says",
    "prefix of other tokens": "a request is admitted on pages of exactly its own first tokens",
    "receive into other pages than its ids name": "a peer is told, in the order of the ids, the"
    " page that each names, and 0 for a row that is retired",
    "request resumed with other bytes": "a retracted request comes back with what it had",
    "row memory of another step": "a row's memory holds what the last forward of its request"
    " left, or what was saved of it",
    "run ahead of a commit": "a request runs again only after the commit of its last step",
    "send of other pages than were queued": "a send carries what its pages held when they were"
    " queued",
    "send of wrong bytes": "a page that is sent holds what was last written to it",
    "state of other tokens": "whoever goes on reads the state after exactly the tokens that it"
    " has run, of its own prompt",
    "wrong bytes in program order": "a page that a step reads holds what was last written for its"
    " id, even if everything ran in the order in which it was enqueued",
    "wrong bytes on a rank": "a launch finds on every rank what the launches before it, in the"
    " order in which they were enqueued, have written",
    # divergence
    "a rank is left alone": "either every rank joins a collective or none does",
    "books differ": "ranks that were asked alike keep equal books",
    "maps differ": "ranks that were asked alike keep equal maps",
    "ranks answer differently": "ranks that were asked alike answer alike, whenever their work"
    " ends",
    "ranks wait for other transfers": "ranks wait for the same transfers, named in the same order",
    "submissions differ": "ranks enqueue the same work, whenever their earlier work ends",
    "wait in an order of its own": "transfers are waited for in the order in which they began",
    # effects
    "flush over its limit": "a flush moves at most as many pages as it may",
    "flush settled": "pending pages come back by a step that is processed or by a take, never by"
    " a flush",
    "flush waited for nothing": "a flush waits only where it moves",
    "free waited": "a free is logical: it makes nobody wait, since its pages pend",
    "mistake accepted": "a call that can mean nothing is refused",
    "mistake left a trace": "a call that is refused has changed nothing",
    "prewarm changed books": "a prewarm leaves every book as it was",
    "prewarm left a first use": "a prewarm runs the copy once for every band",
    "prewarm wrote outside the sink": "a prewarm copies onto the sink alone",
    "refusal changed books": "a call that is refused leaves every book as it was",
    "refusal submitted work": "a call that is refused has enqueued nothing",
    # host_reads
    "host waits in": "only where ids leave for a peer does the host wait for the device",
    "host_wait behind a wait": "what the host waits for is asked before the call enqueues a wait,"
    " or the host stands behind a running step",
    "transfer wait behind a wait": "transfers are waited for before the call enqueues a wait, or"
    " the host stands behind a running step",
    "query behind a wait": "an event is asked before the call enqueues a wait, so that the answer"
    " does not depend on it",
    # idle
    "copies left over": "a copy that was acknowledged, waited for or cancelled is in no ledger",
    "copies remembered": "nothing is kept of a copy that was acknowledged or cancelled, and all"
    " that is needed of one that was not",
    "engines know other transfers": "an engine is told to forget a transfer at its end, not before",
    "ids leaked": "every id and slot that is handed out is a request's or a cached prefix's, and"
    " what they hold is handed out",
    "pages left over": "at rest no page is pending but in quarantine, none fixed but for a load"
    " in preparation",
    "peers left without an answer": "a peer that gave a transfer up is told once it is quiet",
    "rows leaked": "every request row is free or a request's",
    "span left over": "a band without a page claims none",
    "transfers left over": "at rest no transfer is left but sends that more parts may be queued"
    " for",
    "transfers remembered": "nothing is kept of a transfer that is over, but that a peer was told"
    " it never begins, and all that is needed of one that is not",
    "uses left over": "at rest no step can touch a page, so the ledger has no use",
    # initialised
    "read before the first write": "nothing is read that nobody has written since its id was"
    " handed out",
    "row memory of an earlier holder": "the first forward after a row's hand-out resets its memory",
    "slot promised as zeros": "a page of a band whose layout promises zeros is zeroed whenever it"
    " is handed out",
    # ledger
    "allocator refused a legal step": "steps are launched, recorded and processed in their order,"
    " and a buffer is filled once the step before is processed",
    "answer before the end": "a peer is told that a transfer is quiet once no page of it is in use",
    "answer that nobody waits for": "a peer that gave a transfer up is answered once",
    "backup of a page without a name": "a copy touches pages that an id names",
    "load of a page without a name": "a copy touches pages that an id names",
    "transfer of a page without a name": "a peer is handed pages that an id names",
    "copies differ": "the ledger has a copy from its submission until it is acknowledged or the"
    " schedule stream has waited for its event, and of every page that it touches",
    "fixed pages differ": "a page is fixed while a load was given it and no id names it",
    "free too early": "a page pends until every step that may touch it is processed, or the"
    " schedule stream has waited for its event",
    "free too early behind a settle": "what is freed under a step that is not processed pends"
    " right after the free, even where the schedule stream has waited for that step",
    "free under a transfer": "a page that was freed under a transfer pends until that is over",
    "handed over under an unknown name": "an engine gets parts of transfers that have begun",
    "handed to another peer": "an engine gets a part for the peer that its transfer was begun with",
    "holds differ": "rows of a receive are held from their take until an engine has them, pages"
    " of a transfer from then until it is over, and a hold follows a page that moves",
    "kept too long": "a page pends no longer than some step or peer may touch it",
    "move under unknown writes": "no page moves while a step runs that may write any",
    "part under another number": "parts of a transfer are counted from 0, without a gap",
    "send over with parts left": "a send ends when its last part has ended",
    "transfer begins after its abort was answered": "a transfer of which a peer was told that it"
    " never begins does not begin",
    "transfer ended in another way": "a transfer goes on until no part of it can come any more and"
    " the last one has ended on every rank, which is a good end, or until it is stopped; then it"
    " ends as aborted if somebody had asked for that, else as failed",
    "transfer that is over goes on": "a transfer ends with the round in which every rank knows"
    " that nothing of it runs",
    "transfers given up differ": "a transfer that failed or was given up while an engine may"
    " still touch its pages is reported, once, and waits for proof",
    "window row": "a request keeps the rows of a window that its next token attends, or whoever"
    " resumes at the checkpoint that the cache has not taken yet",
    "writes differ": "the ledger has what a step writes from its record until it is processed or"
    " the schedule stream has waited for its event",
    # mapping
    "request row differs": "a forward finds in a request's row the pages that the request holds,"
    " in their order",
    "host and device differ in a row": "a row is one request's and names what that holds, on the"
    " host and on the device",
    "host and device differ in": "what changes a table on the host enqueues the same change for"
    " the device, in the same call",
    # ownership
    "allocator refused a legal call": "no call is refused that names what the allocator has"
    " answered and not taken back",
    "freed twice": "an id is freed by whoever it was handed to, once",
    "held and bound ids differ": "an id names a page exactly while it is handed out",
    "held and bound rows differ": "an id has a window row exactly while a request or a cached"
    " prefix keeps that",
    "held page moved by a flush": "what waits for a peer is moved by a relief alone",
    "host slot with two owners": "a host slot is one copy's until that is dropped or cancelled",
    "id handed out twice": "a take hands out ids that nobody has",
    "page of a transfer handed out": "a page that a peer may touch is handed out only after the"
    " host's wait for that transfer, or after its end",
    "page of a transfer moved": "a page that a peer may touch moves only after the host's wait"
    " for that transfer, or after its end",
    "page outside the arena": "an id names a page behind the sink, inside the arena",
    "page with two owners": "no byte is part of the pages of two ids",
    "reserved page moved": "a row that was reserved for a load stays where it is until it has an"
    " id",
    # translation
    "read of an unbound page": "a step reads only rows that its request keeps",
    "stale translation": "what a step is given for an id is the page that the map names then",
}
"""By the beginning of a break's kind, what should have held there."""


RAISED = "a legal call raises nothing but what is an answer to it"
"""Of errors that have no rule of their own."""


def rule_of(detail: str) -> str:
    """What should have held, by the kind of the break; empty for a race."""
    begins = [begin for begin in RULES if detail.startswith(begin)]
    if begins:
        return RULES[max(begins, key=len)]
    return RAISED if detail.partition(" in ")[0].endswith("Error") else ""
