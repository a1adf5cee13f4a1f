"""From a workload to a plan: reductions, designs, searches, accuracy; no data is read here."""
