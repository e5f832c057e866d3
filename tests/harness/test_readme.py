"""What the README shows is what happens."""

from pathlib import Path

from harness.case import CASE_VERSION, Case
from harness.loading import load_scenario
from harness.report.text import render
from harness.runner import run_seed
from harness.shrinking import shrink_case
from shrink import Budget
from tests.alloc.small_chain import DiaryDevice, Mark
from unikv import __version__
from unikv.build import storage_layout
from unikv.device.port import StorageLayout
from unikv.plan import KVStoragePlan
from unikv.sizing import KVStorageSize
from unikv.storage import KVStorage

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


class Unmade(DiaryDevice):
    """A device of no memory, since what it would hold is gigabytes."""

    def __init__(self, layout: StorageLayout) -> None:
        super().__init__(layout._replace(total_bytes=0))

    def bytes_of(self, band: int, page: int) -> slice:
        """Nowhere."""
        return slice(0, 0)


def shown_report() -> str:
    """The report of the README, without its indentation and its replay command."""
    start = README.index("    ordering: ")
    end = README.index("    replay", start)
    lines = README[start:end].rstrip().splitlines()
    return "\n".join(line[4:] for line in lines)


def test_the_report_is_what_the_command_prints() -> None:
    scenario = load_scenario(ROOT / "scenarios" / "smoke.yaml")
    plant = "move-over-writer"
    found = (run_seed(scenario, "smoke", seed, 400, plant=plant) for seed in range(1, 51))
    result = next(result for result in found if result.violations)
    case = Case(
        version=CASE_VERSION,
        unikv=__version__,
        scenario="smoke",
        scenario_data=scenario,
        setup=result.setup,
        seed=result.seed,
        plant=plant,
        operations=result.trace,
        violation=result.violations[0],
    )
    small = shrink_case(case, Budget())
    assert shown_report() in render(small, small.violation, "")


def test_the_library_example_runs() -> None:
    start = README.index("```python\nfrom unikv.build") + len("```python\n")
    code = README[start : README.index("```", start)]
    names: dict[str, object] = {"event": Mark("end of step 1")}
    before, _, rest = code.partition("storage = build_kv_storage")
    exec(before, names)
    plan, size = names["plan"], names["size"]
    assert isinstance(plan, KVStoragePlan)
    assert isinstance(size, KVStorageSize)
    names["device"] = Unmade(storage_layout(plan, size))
    exec("storage = build_kv_storage" + rest, names)
    storage = names["storage"]
    assert isinstance(storage, KVStorage)
    assert storage.audit() == []
    assert storage.chain.owner.live == 0
