"""Parts of rules that were merged, one per file. Each finds one variant of a rule's finding."""
