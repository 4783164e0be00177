"""Regular expressions in the dialect of Rust's `regex` crate: parsed, judged, and run by two engines."""
