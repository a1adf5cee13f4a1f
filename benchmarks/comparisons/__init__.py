"""Other methods and other tools next to `lrm`, on the same batches."""
