"""Input, output and dead letters of one CXL program over one CSV file, on Spark. Run it with Python."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from clinker_spark import cxl
from clinker_spark.spark.session.sessions import session

HERE = Path(__file__).parent
ERROR = "$error"


def show(console: Console, title: str, rows: DataFrame) -> None:
    table = Table(*rows.columns, title=title, title_justify="left", title_style="bold", header_style="bold cyan")
    for row in rows.collect():  # a dozen rows
        table.add_row(*("[dim]null[/]" if value is None else str(value) for value in row))
    console.print(table)
    console.print()


def main() -> None:
    console = Console()
    path = HERE / "program.cxl"
    source = path.read_text(encoding="utf-8")
    console.print(Syntax(source, "ruby", background_color="default"))  # near enough to CXL for its colours

    console.print("[dim]starting Spark ...[/]")
    spark = session("local[2]", conf={"spark.sql.shuffle.partitions": "2"})
    customers = spark.read.csv(str(HERE / "data" / "customers.csv"), header=True)
    show(console, "Input: all text, some of it wrong", customers)

    # Compiled and typechecked here, in milliseconds and without Spark. A mistake in the program would end the run now.
    program = cxl.compile(source, schema=dict.fromkeys(customers.columns, "string"))

    # One lazy DataFrame: the input columns, the emitted ones, and an error that is null where the record is fine.
    result = program.apply(customers)
    good = result.where(F.col(f"`{ERROR}`").isNull()).drop(ERROR)
    bad = result.where(F.col(f"`{ERROR}`").isNotNull())
    show(console, "Output", good.select("id", "name", "orders", "spent", "member_years", "average_order", "tier"))

    reasons = [F.col(f"`{ERROR}`.{field}").alias(field) for field in ("kind", "field", "value", "message")]
    show(console, "Dead letters: each bad record with its reason", bad.select("id", *reasons))

    spark.stop()


if __name__ == "__main__":
    main()
