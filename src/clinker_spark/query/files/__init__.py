"""Files that programs load: their formats, and the types of their rows. Pure Python, no Java."""
