"""The fast reader: lines cut by expressions, parts looked up by their exact text, new terms through `shortcuts`.

What it does not recognise goes to the grammar reader. Must not know how to read on behind an error.
"""
