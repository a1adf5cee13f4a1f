"""One self-contained HTML page of a plan, a comparison or a release.

The pages need no network and no font, and read well without their one script, which searches.
Whatever comes from outside (names, labels, reasons) is escaped in ``elements``.
"""

from lrm.views.comparison_page import comparison_page
from lrm.views.plan_page import plan_page
from lrm.views.release_page import release_page, write_release_page

__all__ = ["comparison_page", "plan_page", "release_page", "write_release_page"]
