// Before the first paint: the colours that this reader chose, if any. A script of its own, since none may stand in the page.
"use strict";
try {
  const chosen = localStorage.getItem("shoal-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is shut off: the system's colours.
}
