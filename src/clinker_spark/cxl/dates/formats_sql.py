"""Date formats as Spark SQL. What `date_format` and `to_date` do differs in many small ways, so they are not used:
formatting cuts the pieces out of the ISO text of a cast, parsing assembles an ISO text for a cast.

Nothing here depends on the session's time zone or locale.
"""

from __future__ import annotations

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import regex_quote, sql_string
from clinker_spark.cxl.builtins.text import sql_let
from clinker_spark.cxl.dates.formats import (
    DAYS,
    MONTHS,
    NUMBERS,
    TIME_CODES,
    BadFormat,
    Token,
    check_format,
    reader,
    tokens,
)

_ISO = "YYYY-MM-DD HH:MM:SS"  # what a cast to STRING gives, fraction apart
_CUTS = {"Y": (0, 4), "C": (0, 2), "y": (2, 2), "m": (5, 2), "d": (8, 2), "H": (11, 2), "M": (14, 2), "S": (17, 2)}


# ---------------------------------------------------------------- formatting


def sql_format(fmt: str, sql: str, kind: Kind) -> str | None:
    """The text of a DATE or TIMESTAMP_NTZ (`kind`); None for a format that fails. `sql` is repeated."""
    if check_format(fmt, kind) is not None:
        return None
    timed = any(token.code in TIME_CODES for token in tokens(fmt))
    source = sql if timed or kind is Kind.DATE else f"CAST({sql} AS DATE)"  # a date is written faster
    pieces: list[str] = []
    pending = list(tokens(fmt))
    while pending:
        cut = _longest_cut(pending)
        if cut is not None:
            count, start, length = cut
            del pending[:count]
            pieces.append(f"substring(CAST({source} AS STRING), {start + 1}, {length})")
        else:
            pieces.append(_piece(pending.pop(0), sql, kind))
    if not pieces:
        return f"IF({sql} IS NULL, NULL, '')"
    if all(t.code in ("", " ") for t in tokens(fmt)):
        return f"IF({sql} IS NULL, NULL, concat({', '.join(pieces)}))"
    return pieces[0] if len(pieces) == 1 else f"concat({', '.join(pieces)})"


def _longest_cut(pending: list[Token]) -> tuple[int, int, int] | None:
    """How many of the leading tokens stand in the ISO text side by side, and where."""
    first = _CUTS.get(pending[0].code)
    if first is None or pending[0].pad != "0":
        return None
    start, end = first[0], sum(first)
    count = position = 1
    while position + 1 < len(pending):
        text, field = pending[position], pending[position + 1]
        begin, length = _CUTS.get(field.code, (-1, 0))
        if text.code not in ("", " ") or field.pad != "0" or begin != end + len(text.text):
            break
        if _ISO[end:begin] != text.text:
            break
        end, position = begin + length, position + 2
        count = position
    return count, start, end - start


def _piece(token: Token, sql: str, kind: Kind) -> str:
    code = token.code
    if code in ("", " "):
        return sql_string(token.text)
    date = sql if kind is Kind.DATE else f"CAST({sql} AS DATE)"
    if code in "bBaA":
        names, number = (MONTHS, f"month({date})") if code in "bB" else (DAYS, f"weekday({date}) + 1")
        if code in "ba":
            return f"substring('{''.join(n[:3] for n in names)}', ({number}) * 3 - 2, 3)"
        return f"elt({number}, {', '.join(repr(n) for n in names)})"
    if code in "pP":
        am, pm = ("AM", "PM") if code == "p" else ("am", "pm")
        return f"elt(1 + hour({sql}) div 12, '{am}', '{pm}')"
    if code[-1] == "f":
        return _fraction(token, sql)
    text = f"CAST({_number(code, sql, date)} AS STRING)"
    width = NUMBERS[code][0]
    return f"lpad({text}, {width}, '{token.pad}')" if token.pad and width > 1 else text


def _fraction(token: Token, sql: str) -> str:
    code = token.code
    micros = f"rpad(substring(CAST({sql} AS STRING), 21), 6, '0')"
    if code == ".f":
        some = f"substring(CAST({sql} AS STRING), 20)"  # the point and the digits without trailing zeros
        return f"IF({some} = '', '', rpad({some}, IF(length({some}) <= 4, 4, 7), '0'))"
    if code == "f":
        if token.pad == "0":
            return f"concat({micros}, '000')"
        number = f"CAST(try_cast({micros} AS BIGINT) * 1000L AS STRING)"
        return f"lpad({number}, 9, ' ')" if token.pad else number
    point, count = ("'.', ", int(code[1])) if code[0] == "." else ("", int(code[0]))
    digits = f"rpad({micros}, 9, '0')" if count > 6 else micros if count == 6 else f"substring({micros}, 1, {count})"
    return f"concat({point}{digits})" if point else digits


def _number(code: str, sql: str, date: str) -> str:
    if code == "s":
        days = f"CAST(unix_date({date}) AS BIGINT) * 86400L"
        return f"{days} + hour({sql}) * 3600 + minute({sql}) * 60 + second({sql})"
    return {
        "Y": f"year({date})",
        "C": f"year({date}) div 100",
        "y": f"year({date}) % 100",
        "m": f"month({date})",
        "d": f"day({date})",
        "e": f"day({date})",
        "w": f"dayofweek({date}) - 1",
        "u": f"weekday({date}) + 1",
        "U": f"(dayofyear({date}) + 7 - dayofweek({date})) div 7",
        "W": f"(dayofyear({date}) + 6 - weekday({date})) div 7",
        "G": f"extract(YEAROFWEEK FROM {date})",
        "g": f"extract(YEAROFWEEK FROM {date}) % 100",
        "V": f"weekofyear({date})",
        "j": f"dayofyear({date})",
        "H": f"hour({sql})",
        "k": f"hour({sql})",
        "I": f"(hour({sql}) + 11) % 12 + 1",
        "l": f"(hour({sql}) + 11) % 12 + 1",
        "M": f"minute({sql})",
        "S": f"second({sql})",
    }[code]


# ---------------------------------------------------------------- parsing

ISO_DATE = "%Y-%m-%d"
ISO_DATETIME = "%Y-%m-%dT%H:%M:%S%.f"
_ISO_FORMS = (ISO_DATE, "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%.f")
_END = "\\z"
_MONTH_KEYS = "".join(name[:3].lower() for name in MONTHS)
_DAY_KEYS = "".join(name[:3].lower() for name in DAYS)
_NATIVE = frozenset("YymbdjaHIpMS")


class _Parse:
    """One parse as SQL: groups of the pattern become pieces of an ISO text."""

    def __init__(self, fmt: str, sql: str) -> None:
        found = reader(fmt)
        self.sql = sql
        self.pattern = sql_string(f"^{found.pattern}{_END}")
        self.fraction = next((code for code in found.groups if code[-1] == "f"), None)
        self.group = {code: number for number, code in enumerate(found.groups, 1)}

    def has(self, code: str) -> bool:
        return code in self.group

    def extract(self, code: str) -> str:
        return f"regexp_extract({self.sql}, {self.pattern}, {self.group[code]})"

    def assemble(self, *pieces: tuple[str, bool]) -> str:
        """Pieces (SQL, or replacement text of the pattern) put together; neighbouring texts cost one replacement."""
        parts: list[str] = []
        text = ""
        for piece, is_sql in (*pieces, ("", True)):
            if not is_sql:
                text += piece
                continue
            if "$" in text:
                parts.append(f"regexp_replace({self.sql}, {self.pattern}, '{text}')")
            elif text:
                parts.append(f"'{text}'")
            parts += [piece] if piece else []
            text = ""
        return f"concat({', '.join(parts)})"

    def year(self) -> str:
        """Four digits; NULL when the pattern does not match at all."""
        if self.has("Y"):
            return f"substring(concat('000', nullif({self.extract('Y')}, '')), -4)"
        century = "IF(length(_cxl_y) = 1 OR _cxl_y < '7', '20', '19')"
        two = f"concat({century}, lpad(_cxl_y, 2, '0'))"
        return sql_let(f"nullif({self.extract('y')}, '')", "_cxl_y", two)

    def day(self) -> list[tuple[str, bool]]:
        """The date's pieces."""
        if self.has("j"):
            first = f"try_cast(concat({self.year()}, '-01-01') AS DATE)"
            length = "337 + day(last_day(date_add(_cxl_y, 31)))"  # February is what years differ in
            found = f"CASE WHEN _cxl_j BETWEEN 1 AND {length} THEN CAST(date_add(_cxl_y, _cxl_j - 1) AS STRING) END"
            ordinal = f"try_cast({self.extract('j')} AS INT)"
            return [(sql_let(first, "_cxl_y", sql_let(ordinal, "_cxl_j", found)), True)]
        if self.has("m"):
            month = (f"${self.group['m']}", False)
        else:
            key = f"lower(substring({self.extract('b')}, 1, 3))"
            month = (f"CAST((locate({key}, '{_MONTH_KEYS}') + 2) div 3 AS STRING)", True)
        return [(self.year(), True), ("-", False), month, (f"-${self.group['d']}", False)]

    def time(self) -> list[tuple[str, bool]]:
        if self.has("H"):
            hour = (f"${self.group['H']}", False)
        else:
            clock = f"try_cast({self.extract('I')} AS INT) % 12"
            hour = (f"CAST({clock} + IF(lower({self.extract('p')}) = 'pm', 12, 0) AS STRING)", True)
        rest = f":${self.group['M']}:" + (f"${self.group['S']}" if self.has("S") else "00")
        pieces = [("T", False), hour, (rest, False)]
        if self.fraction == "f":
            pieces.append((f"concat('.', lpad({self.extract('f')}, 9, '0'))", True))
        elif self.fraction is not None:
            pieces.append((("" if self.fraction[0] == "." else ".") + f"${self.group[self.fraction]}", False))
        return pieces

    def on_weekday(self, moment: str) -> str:
        """`moment` unless a day of the week was read and is another one."""
        if not self.has("a"):
            return moment
        named = f"(locate(lower(substring({self.extract('a')}, 1, 3)), '{_DAY_KEYS}') + 2) div 3 - 1"
        return sql_let(moment, "_cxl_d", f"CASE WHEN weekday(CAST(_cxl_d AS DATE)) = {named} THEN _cxl_d END")


def sql_parse(fmt: str, sql: str, want: Kind) -> str | None:
    """A STRING as DATE or TIMESTAMP_NTZ (`want`), NULL when it is none; None for formats left to Python."""
    try:
        groups = reader(fmt).groups
    except BadFormat:
        return None
    timed = bool(set(groups) & TIME_CODES)
    if want is Kind.DATETIME and not timed:
        return "CAST(NULL AS TIMESTAMP_NTZ)"  # a date alone is no DateTime
    if not _is_native(groups):
        return None

    def cast(text: str) -> str:
        moment = f"try_cast({text} AS {'TIMESTAMP_NTZ' if timed else 'DATE'})"
        return f"CAST({moment} AS DATE)" if timed and want is Kind.DATE else moment

    parse = _Parse(fmt, sql)
    general = parse.on_weekday(cast(parse.assemble(*parse.day(), *(parse.time() if timed else ()))))
    usual = _usual(fmt, sql)
    return general if usual is None else f"CASE WHEN {usual[0]} THEN {cast(usual[1])} ELSE {general} END"


_ORDER = (("Y", ""), ("m", "'-'"), ("d", "'-'"), ("H", "'T'"), ("M", "':'"), ("S", "':'"), (".f", ""))


def _usual(fmt: str, sql: str) -> tuple[str, str] | None:
    """For formats of fixed width: a test that all digits are there, and the ISO text cut out by position.

    Most columns are written in full, and one plain pattern is several times faster than the general way.
    """
    pattern, at, places = "", 1, {}
    for token in tokens(fmt):
        if token.code in ("", " "):
            pattern, at = pattern + regex_quote(token.text), at + len(token.text)
        elif token.code in _CUTS and token.code not in "Cy":
            width = NUMBERS[token.code][0]
            places[token.code] = f"substring({sql}, {at}, {width})"
            pattern, at = pattern + ("(?!0000)" if token.code == "Y" else "") + f"[0-9]{{{width}}}", at + width
        elif token.code == ".f" and token is tokens(fmt)[-1]:
            places[".f"] = f"substring({sql}, {at})"
            pattern += "([.][0-9]{1,9})?"
        else:
            return None
    iso = fmt.replace("T%H", " %H") in _ISO_FORMS
    parts = [part for code, lead in _ORDER if code in places for part in (lead, places[code]) if part]
    return f"{sql} RLIKE {sql_string(f'^{pattern}' + _END)}", sql if iso else f"concat({', '.join(parts)})"


def _is_native(groups: tuple[str, ...]) -> bool:
    """One way to say each of year, day and (if any) time, and nothing else."""
    codes = {"f" if code[-1] == "f" else code for code in groups}
    if len(codes) < len(groups) or not codes <= _NATIVE | {"f"}:
        return False
    date = codes & set("Yymbdj")
    time = codes & set("HIpMSf")
    if not any(date == set(way) for way in ("Ymd", "ymd", "Ybd", "ybd", "Yj", "yj")):
        return False
    whole = not time or time - {"S", "f"} in (set("HM"), set("IpM"))
    return whole and ("S" in time or "f" not in time)
