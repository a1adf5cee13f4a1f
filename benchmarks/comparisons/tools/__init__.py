"""One table, one batch, one ε: other tools and ``lrm`` side by side.

Run with ``python -m benchmarks tools``. Each tool is installed into a virtual environment of its
own and answers the batch several times through a small driver; what is compared is the error of
the answers. See ``docs/explanation/compared-with-tools.md``.
"""
