"""What each grammar rule becomes: one builder class for each grammar file, joined into the one that Lark calls.

A method bears the name of its rule and gets the rule's children (named tokens and the values of inner rules; None for an
absent optional part). Lark calls it while it parses, so nothing here recurses, however deep the text nests.
"""
