"""Results that are folders of Parquet parts: replaced only if a query wrote them, and never half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from clinker_spark.query.failures import Failed
from clinker_spark.runtime.query.files import write_dataset
from tests.support.sessions import quick


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    return quick(spark)


def save(session: Any, place: Path, parts: int, rows: int, **options: Any) -> None:
    from clinker_spark.spark.query.types import row_type

    frame = session.range(0, rows, 1, parts)
    write_dataset(frame, row_type(frame.schema), str(place), "parquet", {}, **options)


def test_files_and_folders_stay_what_they_are(session: Any, tmp_path: Path) -> None:
    one, several = tmp_path / "one.parquet", tmp_path / "several.parquet"
    save(session, one, 1, 3)
    save(session, several, 2, 4)
    assert one.is_file() and several.is_dir()
    assert all(path.name.startswith("part-") for path in several.iterdir())
    save(session, one, 2, 4)  # several parts become the one file that is there
    save(session, several, 1, 5)  # and one part a folder
    assert one.is_file() and len(list(several.iterdir())) == 1
    assert [len(pq.read_table(place)) for place in (one, several)] == [4, 5]
    (several / "mine.txt").write_text("of the user")
    with pytest.raises(Failed) as caught:
        save(session, several, 2, 6)
    assert caught.value.code == "E421" and "mine.txt" in caught.value.message
    assert (several / "mine.txt").exists() and len(list(several.iterdir())) == 2
    save(session, several, 2, 6, force=True)
    assert len(pq.read_table(several)) == 6 and not (several / "mine.txt").exists()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.csv").write_text("x")
    with pytest.raises(Failed) as caught:
        save(session, tmp_path / "data", 1, 1)
    assert caught.value.code == "E421" and (tmp_path / "data" / "in.csv").read_text() == "x"
    left = [p.name for p in tmp_path.rglob(".clinker-*") if not p.name.startswith(".clinker-manifest-")]
    assert not left
