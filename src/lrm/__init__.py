"""The Low-Rank Mechanism: batches of counting queries under differential privacy."""
