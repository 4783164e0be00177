"""A first look: a pipeline of several nodes, its picture, its results, and what to try next. `make demo` runs it."""

from __future__ import annotations

import csv
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.table import Table

import clinker_spark
from clinker_spark.report.explain import explain
from clinker_spark.report.page.run_page import write_page
from clinker_spark.report.picture import picture

HERE = Path(__file__).parent
NEXT = """
- **Break it.** Write `quantty` in `pipeline.yaml`, then run
  `clinker run {here}/pipeline.yaml --dry-run`: it shows the place, without Java.
- **Look first.** `clinker run {here}/pipeline.yaml --explain`, or `--dry-run -n 3` for what three records become.
- **Ask why.** `clinker dlq inspect {here}/out/dead-letters.csv`
- **Mend and replay.** Correct `many` in that file, then
  `clinker dlq replay {here}/pipeline.yaml {here}/out/dead-letters.csv`
- **Hold orders together.** `examples/24-orders-held-together` keeps whole orders back when one line fails.

(`source .venv/bin/activate` puts `clinker` on your path.)
"""


def main() -> None:
    console = Console(highlight=False)
    pipeline = clinker_spark.load(HERE / "pipeline.yaml")

    title(console, "The pipeline", f"{HERE.name}/pipeline.yaml, checked without Java")
    console.print(picture(pipeline.plan))

    title(console, "What will run", "the beginning of `clinker run pipeline.yaml --explain`")
    plan = explain(pipeline.plan, "text").split("=== Execution Plan ===\n")[1].split("\n\n")[0]
    console.print(Syntax(plan, "text", background_color="default", word_wrap=True))

    title(console, "The input", "data/orders.csv: some of it is wrong")
    table(console, HERE / "data" / "orders.csv")

    with console.status("starting Spark, running the pipeline ..."):
        report = pipeline.run(measure=True)

    title(console, "What became of the records", f"{report.seconds:.0f} s, most of it to start Spark")
    console.print(picture(pipeline.plan, report))
    for name in ("large.csv", "revenue.csv"):
        title(console, f"out/{name}")
        table(console, HERE / "out" / name)
    title(console, "out/small.json")
    console.print((HERE / "out" / "small.json").read_text(encoding="utf-8").rstrip())

    title(console, "Dead letters", "out/dead-letters.csv: every record that failed, where it stood, and why")
    shown = ("source_file", "source_row", "triggering_field", "triggering_value", "error_detail")
    table(console, HERE / "out" / "dead-letters.csv", {f"_cxl_dlq_{name}": name.split("_", 1)[1] for name in shown})

    page = HERE / "out" / "run.html"
    write_page(page, pipeline.plan, report)
    title(
        console, "The run as a page", "graph, numbers, memory, dead letters: `clinker run pipeline.yaml --report FILE`"
    )
    console.print(str(page))

    title(console, "What to try next")
    console.print(Markdown(NEXT.format(here=HERE.relative_to(Path.cwd()) if HERE.is_relative_to(Path.cwd()) else HERE)))


def title(console: Console, text: str, note: str = "") -> None:
    console.print(f"\n[bold cyan]{text}[/]" + (f"  [dim]{note}[/]" if note else ""))


def table(console: Console, path: Path, columns: dict[str, str] | None = None) -> None:
    """A small CSV file as a table."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    chosen = columns or {name: name for name in rows[0]}
    drawn = Table(*chosen.values(), header_style="bold")
    for row in rows:
        drawn.add_row(*(row[name] for name in chosen))
    console.print(drawn)


if __name__ == "__main__":
    main()
