"""The models of pipeline files, one file per node type. They hold what a file says; they decide nothing."""
