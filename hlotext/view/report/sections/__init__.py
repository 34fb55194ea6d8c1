"""The sections of a report, one file each. Each stands alone: from a subject to a section, or why there is none."""
