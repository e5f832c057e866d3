"""Scenario files: read, decoded and refused, always with place, value and what is allowed.

Files come from strangers.  They hold no code, sizes are bounded before anything is built, and what
the types cannot refuse is checked here.
"""

from __future__ import annotations

from errno import EISDIR
from os import strerror
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import msgspec
import yaml

from harness.errors import InputError
from harness.probes import PROBES
from harness.program import DEFAULT_SCENARIOS
from harness.scenario import (
    ARENA_BYTES_MAX,
    CELL_BYTES,
    ENTRY_CELLS_MAX,
    PAGES_MAX,
    TABLE_ENTRIES_MAX,
    Scenario,
    entry_cells,
    page_cells,
)
from harness.weights import OPERATION_WEIGHTS
from unikv.errors import UnikvError
from unikv.plan import KVStoragePlan, plan_kv_storage

FILE_BYTES_MAX = 1 << 20
ENTRY_BYTES_MAX = 1 << 40


def read_file(path: Path, what: str, bytes_max: int) -> bytes:
    """A file's bytes.

    Raises:
        InputError: if it cannot be read or is larger than `bytes_max`.
    """
    try:
        status = path.stat()
        if S_ISDIR(status.st_mode):
            raise IsADirectoryError(EISDIR, strerror(EISDIR))
        if not S_ISREG(status.st_mode):
            raise InputError(f"{path}: not a regular file; want a {what}")
        with path.open("rb") as stream:
            data = stream.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise InputError(
                f"{path}: {what} of {status.st_size} bytes; at most {bytes_max} are read"
            )
        return data
    except OSError as error:
        raise InputError(f"{path}: cannot read this {what}: {error.strerror}") from error


class _PlainLoader(yaml.SafeLoader):
    """YAML without the two features that hide what a file says.

    An alias may stand for any number of nodes, so a short file could fill the memory.  Of a key
    given twice only the last would count.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse an alias before anything is built from it."""
        if self.check_event(yaml.AliasEvent):
            problem = "aliases are not read"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark())
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        """Refuse a key that is given twice."""
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                problem = f"key {key!r} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return node


def load_scenario(path: Path) -> Scenario:
    """Decode and check a scenario file.

    Raises:
        InputError: with file, place, value and what is allowed.
    """
    try:
        text = read_file(path, "scenario", FILE_BYTES_MAX)
    except InputError as error:
        default = DEFAULT_SCENARIOS / f"{path}.yaml"
        is_name = path.name == str(path)
        if is_name and isinstance(error.__cause__, FileNotFoundError) and default.is_file():
            raise InputError(f"{error}; the scenario of that name is {default}") from error
        raise
    try:
        data = yaml.load(text, _PlainLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    try:
        scenario = msgspec.convert(data, Scenario)
    except (msgspec.ValidationError, UnikvError) as error:
        raise InputError(f"{path}: {error}") from error
    check_scenario(scenario, str(path))
    return scenario


def check_scenario(scenario: Scenario, place: str) -> None:
    """Refuse what types cannot: empty spans, unknown operation names, impossible models.

    Raises:
        InputError: with place, value and what is allowed.
    """
    if not scenario.why.strip():
        raise InputError(f"{place}: why is empty; say which hazard the scenario provokes")
    for section in (scenario.pressure, scenario.requests, scenario.loop):
        for field in section.__struct_fields__:
            value = getattr(section, field)
            if isinstance(value, tuple) and value[0] > value[1]:
                raise InputError(f"{place}: {field} is {list(value)}; want [lowest, highest]")
    _check_backend(scenario, place)
    for name in scenario.weights:
        if name not in OPERATION_WEIGHTS:
            raise InputError(
                f"{place}: weights.{name} is no operation; known: {', '.join(OPERATION_WEIGHTS)}"
            )
    if not any({**OPERATION_WEIGHTS, **scenario.weights}.values()):
        raise InputError(f"{place}: every weight is 0, so nothing would happen; raise one")
    for name in scenario.probes:
        if name not in PROBES:
            raise InputError(f"{place}: probe {name!r} is unknown; known: {', '.join(PROBES)}")
    try:
        plan = plan_kv_storage(scenario.model, scenario.page_slots)
    except UnikvError as error:
        raise InputError(f"{place}: {error}") from error
    _check_ceiling(scenario, plan, place)
    for pages in scenario.pressure.arena_pages:
        _check_floor(scenario, plan, pages, place)


def _check_ceiling(scenario: Scenario, plan: KVStoragePlan, place: str) -> None:
    """Refuse what a stored case could not hold: huge entries, arenas and tables."""
    for pool in plan.sub_pools:
        if pool.entry_bytes > ENTRY_BYTES_MAX:
            raise InputError(
                f"{place}: a slot of band {pool.name!r} has {pool.entry_bytes} bytes; at most"
                f" {ENTRY_BYTES_MAX}"
            )
    for pool, cells in zip(plan.sub_pools, entry_cells(scenario, plan), strict=True):
        if cells > ENTRY_CELLS_MAX:
            raise InputError(
                f"{place}: scale.entry_bytes {scenario.scale.entry_bytes} leaves {cells} stamps a"
                f" slot of band {pool.name!r}; at most {ENTRY_CELLS_MAX}; raise scale.entry_bytes"
            )
    pages = scenario.pressure.arena_pages[1] + 1
    sizes = page_cells(scenario, plan)
    size = pages * max(sizes.values()) * CELL_BYTES
    if size > ARENA_BYTES_MAX:
        raise InputError(
            f"{place}: arena_pages {pages - 1} is an arena of {size} bytes with its sink; at most"
            f" {ARENA_BYTES_MAX}"
        )
    for name, cells in sizes.items():
        count = size // (cells * CELL_BYTES)
        if count > PAGES_MAX:
            raise InputError(
                f"{place}: arena_pages {pages - 1} leaves {count} pages of band {name!r}; at most"
                f" {PAGES_MAX}, since every refusal is judged by trying all layouts"
            )
    owner_pages = (pages - 1) * max(sizes.values()) // sizes[plan.owner.name]
    ids = owner_pages * scenario.pressure.id_percent[1] // 100
    if scenario.pressure.rows[1] * ids > TABLE_ENTRIES_MAX:
        raise InputError(
            f"{place}: rows {scenario.pressure.rows[1]} of {ids} ids each; at most"
            f" {TABLE_ENTRIES_MAX} entries"
        )


def _check_backend(scenario: Scenario, place: str) -> None:
    """Refuse shares of more than all seeds, and checkpoints nowhere."""
    backend, checkpoints = scenario.backend, scenario.checkpoints
    shares = (0, 0, 0)
    if backend is not None:
        shares = (backend.in_step_percent, backend.side_stream_percent, backend.relayed_percent)
    if sum(shares) > 100:
        raise InputError(
            f"{place}: backend.in_step_percent, side_stream_percent and relayed_percent are"
            f" {list(shares)}, shares of the same seeds; together at most 100"
        )
    if shares[2] and (scenario.host or scenario.peers):
        raise InputError(
            f"{place}: backend.relayed_percent {shares[2]} beside host or peers, whose copies would"
            " take a state away before its commit; leave one of the two out"
        )
    low, high = checkpoints.interval_blocks
    if low > high:
        raise InputError(
            f"{place}: checkpoints.interval_blocks is {[low, high]}; want [lowest, highest]"
        )


def _check_floor(scenario: Scenario, plan: KVStoragePlan, pages: int, place: str) -> None:
    """Refuse an arena in which one page of every band does not fit at once."""
    cells = page_cells(scenario, plan)
    need = sum(cells.values())
    have = pages * max(cells.values())
    if have < need:
        raise InputError(
            f"{place}: arena_pages {pages} is {have} stamps, but one page of every band takes"
            f" {need} ({', '.join(f'{name} {size}' for name, size in cells.items())});"
            " raise arena_pages"
        )
