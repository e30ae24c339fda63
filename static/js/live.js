// Parts that are replaced while somebody looks: what the reader has opened stays open.
"use strict";

let keptOpen = [];

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target } = event.detail;
  // An open question must not close under the reader's hand: the next answer will bring the same news.
  if (target.querySelector(".confirm[open]")) event.detail.shouldSwap = false;
  keptOpen = [...target.querySelectorAll("details[data-keeps-open][open]")].map((details) => details.id);
});

document.addEventListener("htmx:afterSettle", () => {
  for (const id of keptOpen) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  keptOpen = [];
});
