"""The interactive loop behind `cxl repl`."""
