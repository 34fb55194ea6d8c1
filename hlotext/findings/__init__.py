"""What is found in a text or a module: its severity, its place, and the error that says so. Must not know who finds it."""
