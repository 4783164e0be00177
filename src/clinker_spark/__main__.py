"""`python -m clinker_spark` is the `clinker` command."""

from clinker_spark.cli.clinker.entry import main

if __name__ == "__main__":
    main()
