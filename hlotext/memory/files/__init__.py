"""XLA's four files about memory: read into the classes of this package, and written from them, byte for byte.

`-buffer-assignment.txt`, `-buffer-assignment-values.txt`, `-live-range.txt`, `-memory-usage-report.txt`.
"""
