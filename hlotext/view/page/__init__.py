"""What pages are made of: packed data, hashes of their scripts, colours."""
