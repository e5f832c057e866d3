"""What work in flight does to a page."""

from __future__ import annotations

from enum import Enum


class Use(Enum):
    """What work in flight does to a page."""

    FORWARD_WRITE = "forward_write"  # a recorded step writes slots of the page
    UNKNOWN_WRITE = "unknown_write"  # a recorded step may write any page of the band
    COPY_READ = "copy_read"  # a backup reads the bytes
    COPY_WRITE = "copy_write"  # a load writes them
    RECEIVE_HOLD = "receive_hold"  # taken for a receive whose ids are not published
    NETWORK_SEND = "network_send"  # a transfer engine reads the page
    NETWORK_RECEIVE = "network_receive"  # a peer may write the page
    VACATED = "vacated"  # a move copied the page away; forwards may still read the old bytes
