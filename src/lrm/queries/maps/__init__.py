"""Linear maps: queries and strategies as operators, their inverses, and their files."""
