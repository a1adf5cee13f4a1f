"""What a change must keep: errors of plans, limits of time and memory, tests that find mutants."""
