"""The page in a real browser: stepping, and no part of it wider than a telephone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.report.html import report_html
from harness.report.story import Story
from tests.report.stories import hostile, race, ranks_apart

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs chromium; a Debian package has that name"),
]

HOSTILE = """</script><script>document.title = "taken"</script><b onclick=x>"'&lt;"""


def seen(folder: Path, story: Story, script: str, width: int = 1280) -> str:
    """The page as the browser has it once `script` ran behind the page's own."""
    page = folder / "report.html"
    text = report_html(story).replace("</body>", f"<script>{script}</script></body>")
    page.write_text(text, encoding="utf-8")
    assert BROWSER is not None
    ended = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},900",
            "--virtual-time-budget=2000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout


def current(page: str) -> int:
    """The operation that the page stands at."""
    (found,) = re.findall(r'<li data-operation="(\d+)"[^>]*aria-current', page)
    return int(found)


WALKS = {
    "": 8,
    "k ArrowLeft ArrowUp": 5,
    "Home": 0,
    "Home k": 0,
    "Home j ArrowRight ArrowDown": 3,
    "Home n": 8,
    "End j": 8,
}
"""Keys, and the operation that they lead to from where a page opens."""


def test_keys_step_through_the_operations(tmp_path: Path) -> None:
    script = """
    const ends = [];
    for (const walk of %s) {
      for (const key of ["n", ...walk.split(" ")]) {
        document.dispatchEvent(new KeyboardEvent("keydown", {key}));
      }
      const place = document.querySelector("[aria-current]").dataset.operation;
      ends.push(place);
      for (const cursor of document.querySelectorAll(".cursor")) {
        if (Number(cursor.getAttribute("x")) !== numbers.lefts[place]) ends.push("cursor astray");
      }
    }
    document.title = ends.join();
    """
    page = seen(tmp_path, race(), script % list(WALKS))
    found = re.search(r"<title>(.*?)</title>", page)
    assert found is not None
    assert found[1] == ",".join(map(str, WALKS.values()))


def test_a_page_opens_at_the_failure(tmp_path: Path) -> None:
    page = seen(tmp_path, race(), "")
    assert current(page) == 8
    assert "op 8 of 8" in page


def test_a_click_goes_to_an_operation(tmp_path: Path) -> None:
    script = 'document.querySelector(".go").click();'
    assert current(seen(tmp_path, race(), script)) == 5


@pytest.mark.parametrize("width", [390, 1280])
def test_no_part_is_wider_than_the_window(width: int, tmp_path: Path) -> None:
    # A browser without a screen has a least width, so the page is put into a frame of the width.
    script = (
        f'document.body.style.width = "{width}px";'
        "document.title = [document.body.scrollWidth, document.body.clientWidth].join();"
    )
    page = seen(tmp_path, ranks_apart(), script, width)
    found = re.search(r"<title>(\d+),(\d+)</title>", page)
    assert found is not None
    assert int(found[1]) <= int(found[2])


def test_names_of_strangers_do_nothing(tmp_path: Path) -> None:
    page = seen(tmp_path, hostile(race(), HOSTILE), "")
    assert "<title>taken" not in page
    assert current(page) == 8


def test_labels_of_pages_stay_in_view(tmp_path: Path) -> None:
    script = """
    const strip = document.querySelector(".scroll");
    strip.style.width = "120px"; strip.style.flex = "none";
    document.title = "";
    strip.scrollLeft = 150;
    strip.dispatchEvent(new Event("scroll"));
    const inside = labels.filter(({left, right}) => left < 150 && 155 < right);
    document.title = [inside.length, ...inside.map(({text}) => text.getAttribute("x"))].join();
    """
    page = seen(tmp_path, race(), script)
    found = re.search(r"<title>(.*?)</title>", page)
    assert found is not None
    count, *places = found[1].split(",")
    assert int(count) > 0
    assert set(places) == {"155"}
