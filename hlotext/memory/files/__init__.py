"""Reader and writer of XLA's four memory files.

`-buffer-assignment.txt`, `-buffer-assignment-values.txt`, `-live-range.txt`, `-memory-usage-report.txt`.
"""
