"""Records as documents of blocks, and documents as text, HTML and JSON.

The pages need no network and no font, and read well without their one script, which searches.
Whatever comes from outside (names, labels, reasons) is escaped in ``html``.
"""
