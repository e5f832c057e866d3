"""Host reads: device state that is read behind a wait of the same call is reported."""

import pytest

from harness.device.rank_port import RankPort
from harness.world import World
from tests.harness.lived_in import is_busy, reports, world_when
from unikv.device.port import Stream


def read_behind_a_wait(world: World, port: RankPort, name: str) -> None:
    """A host read after a stream wait, on an event that has passed long ago."""
    event = world.device.record_event(Stream.LOAD)
    port.wait_event(Stream.SCHEDULE, event)
    if name == "query":
        port.query(event)
    else:
        port.host_wait(event)


def blocks_in(world: World, call: str) -> None:
    """Every rank lets the host wait for an event in one allocator call."""
    event = world.device.record_event(Stream.LOAD)
    for port in world.ports:
        port.begin_call(call)
        port.host_wait(event)


@pytest.mark.parametrize("name", ["query", "host_wait"])
def test_a_read_behind_a_wait_is_reported_on_every_rank(name: str) -> None:
    world = world_when("smoke", is_busy)
    for port in world.ports:
        port.begin_call("transfer_round")
        read_behind_a_wait(world, port, name)
    assert reports(world) == [("host_reads", f"{name} behind a wait")] * 2


def test_a_read_of_the_next_call_is_not_reported() -> None:
    world = world_when("smoke", is_busy)
    event = world.device.record_event(Stream.LOAD)
    for port in world.ports:
        port.wait_event(Stream.SCHEDULE, event)
        port.begin_call("take")
        port.query(event)
    assert reports(world) == []


@pytest.mark.parametrize("call", ["free", "retire", "take", "relieve", "free_row", "launch_step"])
def test_a_host_wait_of_a_call_that_waits_for_nothing_is_reported(call: str) -> None:
    world = world_when("smoke", is_busy)
    blocks_in(world, call)
    assert reports(world) == [("host_reads", f"host waits in {call}")] * len(world.ports)


@pytest.mark.parametrize("call", ["transfer_round", "publish_receive"])
def test_a_host_wait_before_ids_leave_is_not_reported(call: str) -> None:
    world = world_when("smoke", is_busy)
    blocks_in(world, call)
    assert reports(world) == []
