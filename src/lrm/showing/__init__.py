"""How records show themselves: words and numbers as text, and who draws pages."""

from lrm.showing.renderers import Renderer, connect, html_of, text_of, write_page

__all__ = ["Renderer", "connect", "html_of", "text_of", "write_page"]
