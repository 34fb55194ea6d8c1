"""Parts of merged rules, one per file: each finds one form of a rule's finding and has no code of its own."""
