"""Results that are kept while several jobs read them, under the name of the node that made them.

Spark names what it keeps after its plan, in which a node may not occur at all. With a name, memory and what was moved
to disk belong to a node, and somebody can choose whose results are moved first.
"""

from __future__ import annotations

import re
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark import SparkContext, StorageLevel
from pyspark.sql import DataFrame

_NAME = re.compile(r"In-memory table results of ([^.]+)")


def keep(frame: DataFrame, node: str, level: StorageLevel) -> DataFrame:
    """The same rows, kept when they are computed for the first time, until `unpersist`. Over Spark Connect they have no
    name: there nobody asks for it."""
    java = getattr(frame, "_jdf", None)
    if java is None:
        return frame.persist(level)
    session: Any = frame.sparkSession
    gateway: Any = SparkContext._gateway
    name = JavaClass("scala.Option", gateway._gateway_client).apply(f"results of {node}")
    java_level = session.sparkContext._getJavaStorageLevel(level)
    session._jsparkSession.sharedState().cacheManager().cacheQuery(java, name, java_level)
    return frame


def node_of(name: str) -> str:
    """The node whose results Spark keeps under a name; '' for what is not ours. Of a node in a composition, the call.

    >>> node_of("In-memory table results of totals"), node_of("In-memory table results of call.totals"), node_of("Sort")
    ('totals', 'call', '')
    """
    named = _NAME.match(name)
    return "" if named is None else named[1]
