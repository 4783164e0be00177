"""The Polars forms of builtins. Rows of the builtin table name them by `module.function`; only workers load them."""
