"""XML files as records: paths, attributes, repeated elements and broken files without Spark; one read through Spark."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import XmlRead
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.record_batches import read_batches
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from clinker_spark.spark.scan.xml.source import xml_plan
from tests.support.read_requests import read_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID, NAME = Column(name="id", type="int"), Column(name="name", type="string")


def write(folder: Path, data: bytes | str, name: str = "f.xml") -> SourceFile:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return SourceFile(str(path), name)


def request(files: Any, columns: tuple[Column, ...] = (ID, NAME), *, options: Any = None, **more: Any) -> ReadRequest:
    return read_request(files, columns, XmlRead(**(options or {})), **more)


def rows(req: ReadRequest, chunk: int = 1 << 16) -> list[dict[str, Any]]:
    plan = xml_plan(req, chunk=chunk)
    return [row for split in plan.splits for batch in read_batches(plan, split) for row in batch.to_pylist()]


def bare(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(v for k, v in row.items() if not k.startswith("$")) for row in found]


def error(row: dict[str, Any]) -> tuple[Any, ...] | None:
    e = row["$error"]
    return None if e is None else (e["kind"], e["field"], e["value"])


def problems(req: ReadRequest) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        rows(req)
    return [(d.code, d.message) for d in caught.value.diagnostics]


TWO = "<p><id>1</id><name>a &amp; <![CDATA[<b>]]></name></p><p><id>2</id><name/></p>"
EXPECTED = [(1, "a & <b>"), (2, "")]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"<all>{TWO}</all>", {}),
        (f"<?xml version='1.0'?>\n<all>\n {TWO} <!-- no more -->\n</all>\n", {"record_path": "all/p"}),
        (f"<all><other><p><id>9</id></p></other><in>{TWO}</in><x/></all>", {"record_path": "/all/in/p/"}),
        (f"<n:all xmlns:n='u'><n:in>{TWO.replace('id>', 'n:id>')}</n:in></n:all>", {"record_path": "all/in/p"}),
    ],
)
@pytest.mark.parametrize("chunk", [1, 1 << 16])
def test_records(tmp_path: Path, text: str, options: dict[str, str], chunk: int) -> None:
    assert bare(rows(request(write(tmp_path, text), options=options), chunk)) == EXPECTED


def test_attributes_and_nested_elements(tmp_path: Path) -> None:
    columns = tuple(
        Column(name=name, type=kind, source_name=place)
        for name, kind, place in [
            ("key", "int", "@key"),
            ("price", "decimal(2)", "price"),
            ("currency", "string", "price.@currency"),
            ("city", "string", "address.city"),
            ("kind", "nullable(string)", "address.@kind"),
        ]
    )
    text = """<r><i key="7"><price currency="EUR">1.5</price>
        <address kind="home"><city>Köln</city><zip/></address><more a="1"/></i></r>"""
    (row,) = rows(request(write(tmp_path, text), columns, record=True))
    assert bare([row]) == [(7, Decimal("1.50"), "EUR", "Köln", "home")]
    assert row["$widened"] == [("address.zip", ""), ("more.@a", "1"), ("more", "")]
    assert row["$record"]["price"] == "1.5"
    (row,) = rows(request(write(tmp_path, text), columns[1:2], options={"attribute_prefix": "_"}))
    assert dict(row["$widened"])["_key"] == "7"


def test_namespaces(tmp_path: Path) -> None:
    text = "<a:r xmlns:a='u' xmlns='v'><a:i a:k='1'><a:id>3</a:id></a:i></a:r>"
    (row,) = rows(request(write(tmp_path, text), (ID,)))
    assert (row["id"], row["$widened"]) == (3, [("@k", "1")])
    columns = (Column(name="id", type="int", source_name="a:id"),)
    (row,) = rows(request(write(tmp_path, text), columns, options={"namespace_handling": "qualify"}))
    assert (row["id"], row["$widened"]) == (3, [("@a:k", "1")])


def test_repeated_elements(tmp_path: Path) -> None:
    text = (
        "<r><i><id>1</id><t>5</t><t>6</t></i><i><id>2</id></i><i><id>3</id><t>x</t></i><i><id>4</id><id>5</id></i></r>"
    )
    found = rows(request(write(tmp_path, text), (ID, Column(name="t", type="array(int)"))))
    assert bare(found) == [(1, [5, 6]), (2, []), (3, None), (4, [])]
    assert [error(row) for row in found] == [
        None,
        None,
        ("type_coercion_failure", "t", "x"),
        ("structural_validation", "id", "5"),
    ]
    nullable = Column(name="t", type="nullable(array(string))")
    assert [row["t"] for row in rows(request(write(tmp_path, text), (ID, nullable)))] == [["5", "6"], None, ["x"], None]
    # Nobody asked for `t`: it is in nobody's way. Carried along, it would lose a value.
    assert [error(row) for row in rows(request(write(tmp_path, text), (ID,), on_unmapped="drop"))][:3] == [None] * 3
    assert error(rows(request(write(tmp_path, text), (ID,)))[0]) == ("structural_validation", "t", "6")


def test_values_that_are_missing_or_wrong(tmp_path: Path) -> None:
    columns = (ID, NAME, Column(name="q", type="nullable(int)"))
    text = "<r><i><name>a</name></i><i><id/><name/><q/></i><i><id> 1</id></i><i><id>1</id></i></r>"
    found = rows(request(write(tmp_path, text), columns))
    assert [error(row) for row in found] == [
        ("missing_required_field", "id", None),
        ("missing_required_field", "id", ""),
        ("type_coercion_failure", "id", " 1"),
        ("missing_required_field", "name", None),
    ]


def test_undeclared_elements(tmp_path: Path) -> None:
    file = write(tmp_path, "<r><i><id>1</id><x>a</x></i><i><id>2</id><y>b</y></i></r>")
    assert xml_plan(request(file, (ID,))).widened == ("x", "y")
    assert [row["$widened"] for row in rows(request(file, (ID,)))] == [[("x", "a")], [("y", "b")]]
    assert list(rows(request(file, (ID,), on_unmapped="drop"))[0]) == ["id", "$error"]
    assert [p[0] for p in problems(request(file, (ID,), on_unmapped="reject"))] == ["E228", "E228"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<r>\n <i></r>", "is not XML, line 2, column 7: mismatched tag"),
        ("<r><i>", "is not XML, line 1, column 7: no element found"),
        ("<r>&nope;</r>", "is not XML, line 1, column 4: undefined entity"),
        (
            '<!DOCTYPE r [<!ENTITY a "aaaa">]><r>&a;</r>',
            "declares the entity 'a', which is not read (line 1, column 25)",
        ),
        ('<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r/>', "declares the entity 'a', which is not read"),
        ('<!DOCTYPE r SYSTEM "x.dtd"><r>&a;</r>', "uses the entity 'a', which it does not declare"),
    ],
)
def test_files_that_are_not_read(tmp_path: Path, text: str, what: str) -> None:
    file = write(tmp_path, text)
    ((code, message),) = problems(request(file))
    assert code == "E246" and message.startswith(f"'f.xml' {what}")
    with pytest.raises(InputError, match="E246"):  # also where nothing was read before the tasks
        rows(request(file, on_unmapped="drop"))


def test_what_does_not_fit(tmp_path: Path) -> None:
    file = write(tmp_path, "<r><i/></r>")
    ((code, message),) = problems(request(file, options={"record_path": "root/i"}))
    assert (code, message) == ("E246", "'f.xml' begins with 'r', and record_path with 'root' (line 1, column 1)")
    assert problems(request(file, (Column(name="m", type="map(int)"),)))[0][0] == "E226"
    assert problems(request(file, (Column(name="m", type="array(array(int))"),)))[0][0] == "E226"
    assert problems(request(SourceFile("abfss://c@a/x.xml", "x.xml")))[0][0] == "E248"
    assert rows(request(file, options={"record_path": "r/none"})) == []
    assert rows(request(write(tmp_path, " \n"))) == []
    assert bare(rows(request(write(tmp_path, "<!DOCTYPE all><all>" + TWO + "</all>")))) == EXPECTED


def test_encodings_compression_positions_and_limits(tmp_path: Path) -> None:
    declared = "<?xml version='1.0' encoding='%s'?><r><i><id>1</id><name>é</name></i></r>"
    for encoding in ("iso-8859-1", "utf-16", "windows-1252", "utf-8-sig"):
        text = declared % encoding.removesuffix("-sig")
        assert bare(rows(request(write(tmp_path, text.encode(encoding))))) == [(1, "é")]
    files = [
        write(tmp_path, f"<r>{TWO}</r>", "a.xml"),
        write(tmp_path, gzip.compress(f"<r>{TWO}</r>".encode()), "b.gz"),
    ]
    for mode in ("drop", "auto_widen"):
        found = rows(request(files, positions=True, on_unmapped=mode))
        assert [(row["$file"], row["$row"]) for row in found] == [(0, 1), (0, 2), (1, 1), (1, 2)]
        assert xml_plan(request(files, positions=True, on_unmapped=mode)).row_offsets == (0, 2)
    assert bare(rows(request(files, limit=3))) == [*EXPECTED, EXPECTED[0]]


def test_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    from clinker_spark.spark.scan.formats import read

    text = "<r>" + "".join(f"<i n='{i}'><id>{i}</id><t>a</t><t>b</t></i>" for i in range(5)) + "<i><id>x</id></i></r>"
    columns = (ID, Column(name="t", type="array(string)"), Column(name="a", type="any", source_name="@n"))
    files = (write(tmp_path, text, "b.xml"), write(tmp_path, "<r><i><id>5</id><z/></i></r>", "a.xml"))
    scan = read(spark, "xml", request(files, columns, arrival=True, positions=True, record=True))
    assert (scan.widened, scan.row_offsets) == (("z",), (0, 6))
    found = scan.frame.collect()
    assert [row["id"] for row in found] == [0, 1, 2, 3, 4, None, 5]
    assert found[1]["t"] == ["a", "b"] and found[1]["a"].toPython() == "1" and found[6]["$widened"] == {"z": ""}
    assert found[5]["$error"]["value"] == "x" and found[5]["$record"]["id"] == "x"
    arrivals = [row["$arrival"] for row in found]
    assert arrivals == sorted(set(arrivals))
