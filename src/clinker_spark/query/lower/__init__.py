"""Queries over files and tables, lowered to trees of Spark SQL in pipe syntax. No pyspark here.

A query becomes one SQL query: Catalyst then prunes columns, pushes conditions down to the files, chooses joins and
turns correlated sub-queries into joins. What is decided here is what SQL does not know: the order of rows, two-valued
comparisons, groups as values, records.
"""
