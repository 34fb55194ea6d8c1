"""What may be the matter with a text that the grammar cannot read, in words that help.

Must not know how it was read: what comes in is a text, a place and the terminals that could stand there.
"""
