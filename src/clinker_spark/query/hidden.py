"""Names of the hidden columns that queries make or read, besides those of `cxl.hidden`.

What each holds, who writes it and who reads it stands in `plan.hidden`, with those of the pipeline.
"""

from __future__ import annotations

# Where a row stands in the files or the list that it was read from. The readers of pipelines say it alike.
FILE_COLUMN = "$file"
BLOCK_COLUMN = "$block"
ROW_COLUMN = "$row"

FIRST_COLUMN = "$first"
HERE_COLUMN = "$here"
POSITION_COLUMN = "$pos"
ROWS_COLUMN = "$rows"
SIDE_COLUMN = "$side"

# A number follows each of these.
PREPARED_PREFIX = "$x"
ORDER_PREFIX = "$o"
UNITED_PREFIX = "$u"
