"""The rules, one in a file. The page of C101 is `pages/C101.md`."""
