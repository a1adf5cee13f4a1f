"""The one script of a page: a search among its answers. Nothing depends on it."""

from __future__ import annotations

__all__ = ["SEARCH"]

SEARCH = """(root) => {
  const place = root.querySelector(".search");
  if (!place) return;
  const box = place.querySelector("input"), told = place.querySelector("output");
  const parts = [...root.querySelectorAll("details[id]")];
  const rows = parts.flatMap((part) => [...part.querySelectorAll("tbody tr")].map((row) => {
    const above = [part.querySelector("h3").textContent, row.closest("table").dataset.key];
    return { row, part, text: [...above, row.cells[0].textContent].join(" ").toLowerCase() };
  }));
  const first = parts.map((part) => part.open);
  place.hidden = false;
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean), found = new Set();
    let count = 0;
    for (const { row, part, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) { found.add(part); count += 1; }
    }
    parts.forEach((part, i) => {
      part.hidden = !found.has(part);
      part.open = words.length ? found.has(part) : first[i];
    });
    for (const table of root.querySelectorAll("details[id] .scroll"))
      table.hidden = !table.querySelector("tbody tr:not([hidden])");
    told.textContent = words.length ? `${count} of ${rows.length} rows` : "";
  });
}"""
"""A function of the element that holds a search box: filters the rows of folding parts."""
