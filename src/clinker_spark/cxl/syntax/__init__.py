"""From CXL text to a syntax tree."""
