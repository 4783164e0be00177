"""How records become the text of a file: native Spark SQL per record, and the bytes around the records."""
