"""All hidden columns."""

from __future__ import annotations

from clinker_spark.plan.hidden.carried import BETWEEN_NODES, OF_READERS
from clinker_spark.plan.hidden.local import INSIDE_NODES, INSIDE_QUERIES
from clinker_spark.plan.hidden.programs import OF_PROGRAMS

HIDDEN_COLUMNS = (*OF_PROGRAMS, *BETWEEN_NODES, *OF_READERS, *INSIDE_NODES, *INSIDE_QUERIES)
