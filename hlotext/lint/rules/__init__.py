"""The lint rules, one per file. The documentation of C101 is `pages/C101.md`."""
