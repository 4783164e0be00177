"""Events as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
import pyarrow as pa

from clinker_spark.dataset.either import joined
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.indexes import FIRST, LAST, NUMBER, TIME, number_of
from clinker_spark.runtime.dataset.component_types import as_kept, common, kept
from clinker_spark.runtime.dataset.events import ENTITY, INDEX_VALUE, SEGMENT, Block, Reading, entity_path

_BLOCK_LINES = 100_000
_BLOCK_BYTES = 32 << 20


@dataclass
class _Group:
    """Events with the same segment, entity and indexes."""

    indexes: dict[str, list[Any]]
    components: dict[str, list[Any]] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, number: int, event: dict[str, Any], line: int) -> None:
        rows = len(self.numbers)
        for name, value in event.items():
            column = self.components.get(name)
            if column is None:
                column = self.components[name] = []
            if len(column) < rows:
                column.extend([None] * (rows - len(column)))
            column.append(value)
        self.numbers.append(number)
        self.lines.append(line)


def json_events(file: IO[bytes], path: str, reading: Reading) -> Iterator[Block]:
    groups: dict[tuple[Any, ...], _Group] = {}
    read = size = 0
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        event = _event(line, f"{path}:{number}")
        path_of = (str(event.pop(SEGMENT)), entity_path(event.pop(ENTITY)))
        given = tuple(name for name in reading.names if name in event)
        numbers = {name: _index_number(event.pop(name), name, reading, f"{path}:{number}") for name in given}
        if not event:
            continue
        group = groups.get((*path_of, given))
        if group is None:
            _check_text("".join(path_of), f"{path}:{number}")
            group = groups[(*path_of, given)] = _Group({name: [] for name in given})
        for name, value in numbers.items():
            group.indexes[name].append(value)
        group.add(reading.counted[path_of], event, number)
        reading.counted[path_of] += 1
        read, size = read + 1, size + len(line)
        if read == _BLOCK_LINES or size > _BLOCK_BYTES:
            yield from _blocks(groups, path)
            groups.clear()
            read = size = 0
    yield from _blocks(groups, path)


def _event(line: bytes, place: str) -> dict[str, Any]:
    """The values of an event, which has a segment and an entity. Raises DatasetError for anything else."""
    try:
        event = json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else error
        raise DatasetError("E852", f"{place}: this is no JSON: {reason}", _ONE_EVENT) from None
    if not isinstance(event, dict):
        raise DatasetError("E852", f"{place}: this is no event", _ONE_EVENT)
    event = {name: value for name, value in event.items() if value is not None}
    segment, entity = event.get(SEGMENT), event.get(ENTITY)
    if not isinstance(segment, str | int) or isinstance(segment, bool) or segment == "":
        raise DatasetError("E852", f"{place}: the event has no 'segment'", _ONE_EVENT)
    if not isinstance(entity, str) or not entity.strip("/"):
        raise DatasetError("E852", f"{place}: the event has no 'entity'", _ONE_EVENT)
    return event


def _check_text(text: str, where: str) -> None:
    """JSON can write half a character, which no file of text can have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        help_text = "write whole characters; \\ud800 to \\udfff only come in pairs"
        raise DatasetError("E852", f"{where}: {text!a} is no text", help_text) from None


def _index_number(value: Any, name: str, reading: Reading, where: str) -> int:
    kind = NUMBER if type(value) is int else TIME
    if reading.known.get(name) != kind or kind == TIME or not FIRST <= value <= LAST:
        text = value if kind == NUMBER or not str(value).strip().lstrip("+-").isdigit() else None
        try:
            number = number_of(text if isinstance(text, str | int) else None, kind, name)
        except DatasetError:
            message = f"{where}: {json.dumps(value)[:60]} is no value of index '{name}'"
            raise DatasetError("E852", message, INDEX_VALUE) from None
        reading.check(name, kind, where)
        return number
    return int(value)


def _blocks(groups: dict[tuple[Any, ...], _Group], path: str) -> Iterator[Block]:
    for (segment, entity, _), group in groups.items():
        components = {}
        for name, values in group.components.items():
            values += [None] * (len(group.numbers) - len(values))
            where = f"{path}: '{entity}:{name}'"
            try:
                components[name] = as_kept(_array(values), where)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                raise _refused(name, values, group.lines, path, entity) from None
            _check_text(name, where)
        indexes = {name: np.array(values, dtype=np.int64) for name, values in group.indexes.items()}
        yield Block(segment, entity, np.array(group.numbers, dtype=np.int64), indexes, components)


def _array(values: list[Any]) -> pa.Array:
    if not any(isinstance(value, list) for value in values):
        return pa.array(values)
    many = pa.array([value if isinstance(value, list) else None for value in values])
    one = pa.array([None if isinstance(value, list) else value for value in values])
    if pa.types.is_null(one.type):
        return many
    kind = common(kept(one.type), kept(many.type))
    if kind is None:
        raise pa.ArrowInvalid(f"single values are {one.type}, and those in lists {many.type.value_type}")
    return joined(one, many, kind)


def _refused(name: str, values: list[Any], lines: list[int], path: str, entity: str) -> DatasetError:
    """Which value is it that does not go with those before it? Found by trying fewer of them."""
    low, high = 0, len(values)  # the first `low` values are well, the first `high` are not
    reason = ""
    while high - low > 1:
        middle = (low + high) // 2
        if problem := _problem(values[:middle]):
            high, reason = middle, problem
        else:
            low = middle
    line = lines[high - 1]
    for value in (values[high - 1], name):
        if isinstance(value, str):
            _check_text(value, f"{path}:{line}")
    reason = reason or _problem(values)
    shown = json.dumps(values[high - 1])[:60]
    message = f"{path}:{line}: {shown} does not go with other values of '{entity}:{name}': {reason}"
    return DatasetError("E853", message, _ONE_TYPE)


def _problem(values: list[Any]) -> str:
    try:
        as_kept(_array(values), "")
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, DatasetError) as error:
        return str(error).splitlines()[0]
    return ""


_ONE_EVENT = 'an event is an object such as {"segment": "run1", "entity": "/arm", "frame": 10, "v": 100}'
_ONE_TYPE = "a component has values of one type; whole numbers and others may be mixed, single values and lists, too"
