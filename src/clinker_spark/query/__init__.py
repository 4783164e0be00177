"""The query language: LINQ-style clauses around CXL expressions, over lists, files and tables.

Everything here is pure Python: parsing, checking and running programs over literals starts no Java.
"""
