"""The query language: LINQ-style clauses around CXL expressions, over lists, files and tables.

Everything here is pure Python: parsing, checking and running programs over literals starts no Java.

The package can be called, as the short way from Python to Spark:

>>> clinker_spark.query("from p in people where p.age >= 18 select p.name", people=df)  # doctest: +SKIP
"""

import sys

import clinker_spark

sys.modules[__name__].__class__ = clinker_spark.CallableQueries
