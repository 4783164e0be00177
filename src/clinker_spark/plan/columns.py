"""Names of the hidden columns of pipelines, besides those of `cxl.hidden` and `query.hidden`.

Hidden columns ride along with the columns of a record, so that projections, shuffles and joins carry them for free.
Their names begin with `$`, as those of no other column do. A name stands here, or in one of those two if the language
or the queries need it, and nowhere else. `plan.hidden` says of all of them what they hold and who uses them.
"""

from __future__ import annotations

# Between nodes.
DOCUMENT_COLUMN = "$document"
EVENT_COLUMN = "$event"
TIME_COLUMN = "$time"
BEAT_COLUMN = "$beat"
WIDENED_COLUMN = "$widened"
CELLS_PREFIX = "$cells."
ORIGIN_COLUMN = "$origin"
LETTER_COLUMN = "$letter"
STAGE_COLUMN = "$stage"
CK_PREFIX = "$ck."
CK_AGGREGATE_PREFIX = "$ck.aggregate."
GROUP_PREFIX = "$group."
UNTRACED = "-"
"""Begins the text of a group that no record of a source is behind: nothing can be retracted for it."""
FROM_COLUMN = "$from"
LEFT_OUT_COLUMN = "$left_out"
BUILT_COLUMN = "$built"
HELD_COLUMN = "$held"

# From readers to sources.
FAILED_COLUMN = "$failed"
RECORD_COLUMN = "$record"
LINE_COLUMN = "$line"

# Inside nodes.
RANGE_COLUMN = "$range"
GONE_FILE_COLUMN = "$gone.file"
GONE_ROW_COLUMN = "$gone.row"
KEPT_COLUMN = "$kept"
OK_COLUMN = "$ok"
BEFORE_COLUMN = "$before"
LOG_COLUMN = "$log"
SIZE_COLUMN = "$size"
START_COLUMN = "$start"
NUMBER_COLUMN = "$number"
LOOKUP_KEY_PREFIX = "$key."
THERE_PREFIX = "$there."
FOUND_COLUMN = "$found"
LOST_COLUMN = "$lost"
PORT_COLUMN = "$port"
PORT_PREFIX = "$port."
WINDOW_COLUMN = "$window"
BEGINS_COLUMN = "$begins"
JOIN_PREFIX = "$join."
MATCHED_PREFIX = "$matched."
ARRAY_PREFIX = "$array."
FILE_KEY_COLUMN = "$key"
BYTES_COLUMN = "$bytes"
GOOD_COLUMN = "$good"
WITHHELD_COLUMN = "$withheld"
SORT_FILE_COLUMN = "$sort_file"
SORT_PREFIX = "$sort"
ID_COLUMN = "$id"
FAMILY_COLUMN = "$family"

ORIGIN_TYPE = "STRUCT<source: INT, file: INT, row: BIGINT>"
BUILT_TYPE = f"ARRAY<{ORIGIN_TYPE}>"
LETTER_TYPE = "MAP<STRING, STRING>"
