"""The figures of the documentation, each by one command."""
