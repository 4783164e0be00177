"""How chunks become rows: values in order of time, the horizon up to which they are final, and their assembly."""
