"""Clinker on Spark: declarative data pipelines with a typed expression language (CXL).

>>> from clinker_spark import cxl  # doctest: +SKIP
>>> cxl.compile("emit total = price * 2", schema={"price": "int"}).evaluate({"price": 21})  # doctest: +SKIP
[{'total': 42}]
"""

__version__ = "0.1.0.dev0"
