"""Forms of what merged rules find, one in each file: rules without codes of their own."""
