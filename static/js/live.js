// Parts that are replaced while somebody looks: what the reader has opened stays open, and a hidden tab asks for nothing.

const resting = new Map();
let keptOpen = [];

// The last that each element would have asked for while nobody looked; asked for once when somebody does.
document.addEventListener("htmx:confirm", (event) => {
  const { elt, verb, issueRequest } = event.detail;
  if (!document.hidden || verb !== "get") return;
  event.preventDefault();
  resting.set(elt, issueRequest);
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  const waiting = [...resting];
  resting.clear();
  for (const [element, issueRequest] of waiting) if (element.isConnected) issueRequest(true);
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, requestConfig } = event.detail;
  // An open question must not close under the reader's hand: the next answer will bring the same news.
  if (!requestConfig.triggeringEvent && target.querySelector(".confirm[open]")) event.detail.shouldSwap = false;
  keptOpen = [...target.querySelectorAll("details[data-keeps-open][open]")].map((details) => details.id);
});

document.addEventListener("htmx:afterSettle", () => {
  for (const id of keptOpen) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  keptOpen = [];
});
