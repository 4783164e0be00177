"""The page in a real browser: it fits a desk and a phone, follows light and dark, and asks nobody for anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.report.page.run_page import write_page
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from tests.report.page.reports import EXAMPLES, NAMES, page_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (1280, 390)
HARNESS = """<!doctype html><body><script>
const found = [];
function look(name, width) {
  return new Promise(done => {
    const frame = document.createElement("iframe");
    frame.style = `width:${width}px;height:800px;border:0`;
    frame.onload = () => {
      const page = frame.contentDocument, root = page.documentElement, style = frame.contentWindow.getComputedStyle;
      const parts = [...page.querySelectorAll("section, header, table, svg")];
      const seen = parts.filter(part => part.getBoundingClientRect().height < 4);
      found.push({name, width, wide: root.scrollWidth, back: style(page.body).backgroundColor,
                  text: style(page.body).color, flat: seen.length, sections: page.querySelectorAll("section").length});
      done();
    };
    frame.src = name;
    document.body.append(frame);
  });
}
(async () => {
  for (const name of NAMES) for (const width of WIDTHS) await look(name, width);
  document.title = "done";
  document.body.textContent = JSON.stringify(found);
})();
</script></body>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, quick: SparkSession) -> Path:
    """Pages of made-up runs, which have something in every part, and of real ones."""
    folder = tmp_path_factory.mktemp("pages")
    for name in NAMES:
        (folder / f"{name}.html").write_text(page_of(name).html(), encoding="utf-8")
        place = shutil.copytree(EXAMPLES / name, folder / name)
        plan = prepare(next(place.glob("*.yaml")))
        write_page(folder / f"{name}.real.html", plan, run(plan, quick, Options(measure=True)))
    names = json.dumps([f"{name}{kind}.html" for name in NAMES for kind in ("", ".real")])
    text = HARNESS.replace("of NAMES", f"of {names}").replace("of WIDTHS", f"of {json.dumps(WIDTHS)}")
    (folder / "all.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: scripts/ensure_chromium.sh installs it")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_in_a_browser(pages: Path, scheme: str) -> None:
    log = pages / f"net-{scheme}.json"
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    flags += [f"--user-data-dir={pages / scheme}", f"--log-net-log={log}", "--virtual-time-budget=20000"]
    flags += [f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}", "--dump-dom"]
    done = subprocess.run([str(CHROMIUM), *flags, (pages / "all.html").as_uri()], capture_output=True, timeout=120)
    body = re.search(r"<body>(.*)</body>", done.stdout.decode(), re.DOTALL)
    assert body is not None and body[1].startswith("["), done.stdout[-2000:]
    found: list[dict[str, Any]] = json.loads(unescape(body[1]))
    assert len(found) == 2 * len(NAMES) * len(WIDTHS)
    for page in found:
        assert page["wide"] <= page["width"], (
            f"{page['name']} is wider than a screen of {page['width']}: {page['wide']}"
        )
        assert page["sections"] >= 5 and page["flat"] == 0
        back, text = (sum(map(int, re.findall(r"\d+", page[name])[:3])) for name in ("back", "text"))
        assert back < text if scheme == "dark" else back > text
    pages_asked = set(re.findall(r'"url":"((?!file:|data:|chrome|devtools)[a-z]+://[^"]*)"', log.read_text()))
    assert not {url for url in pages_asked if "gstatic" not in url and "google" not in url}, pages_asked
