"""Shared by the measuring scripts in bench/. Standard library only."""
