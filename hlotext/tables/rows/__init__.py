"""Builders of tables from a module, by table."""
