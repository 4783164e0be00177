"""CXL values as JSON text.

>>> import datetime as dt; from decimal import Decimal
>>> print(dump({"at": dt.datetime(2024, 3, 15, 14, 30), "net": Decimal("1.50"), "x": 2.0, "y": float("nan")}))
{"at": "2024-03-15T14:30:00", "net": "1.50", "x": 2.0, "y": "NaN"}
"""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from decimal import Decimal
from typing import Any

from clinker_spark.cxl.builtins.text import datetime_text
from clinker_spark.cxl.values import decimal_text


def dump(value: Any, *, pretty: bool = False) -> str:
    """Dates and decimals become texts, and so do NaN and the infinities, which JSON has no numbers for."""
    return json.dumps(_plain(value), ensure_ascii=not _unicode_output(), indent=2 if pretty else None)


def _plain(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case Decimal():
            return decimal_text(value)
        case dt.datetime():
            return datetime_text(value, "T")
        case dt.date():
            return value.isoformat()
        case list() | tuple():
            return [_plain(v) for v in value]
        case dict():
            return {k: _plain(v) for k, v in value.items()}
    return value


def _unicode_output() -> bool:
    """Can standard output show every character? If not, JSON escapes are the honest form."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
