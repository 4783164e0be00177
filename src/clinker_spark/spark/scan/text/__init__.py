"""What all readers of text share: bytes as UTF-8, texts as typed values."""
