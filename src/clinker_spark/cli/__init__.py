"""The commands `clinker` and `cxl`."""
