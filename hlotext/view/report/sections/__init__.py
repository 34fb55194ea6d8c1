"""Sections of a report, one per file. Each returns a section for a report input, or the reason why there is none."""
