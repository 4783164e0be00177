"""The canonical form of CXL text."""
