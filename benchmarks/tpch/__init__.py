"""The 22 TPC-H queries, in the query language (`qNN.mochi`) and in SQL (`qNN.sql`)."""
