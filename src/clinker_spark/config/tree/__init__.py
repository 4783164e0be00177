"""YAML and TOML as one kind of tree that remembers where everything stands."""
