// The command palette: Ctrl-K or Cmd-K opens it, Escape closes it and gives the focus back.
import { attachCombobox } from "./combobox.js";

const dialog = document.getElementById("palette");

function start() {
  const input = document.getElementById("palette-field");
  const results = document.getElementById("palette-results");
  const status = document.getElementById("palette-status");

  function open() {
    for (const other of document.querySelectorAll("dialog[open]")) other.close();
    input.value = "";
    input.setAttribute("aria-expanded", "false");
    dialog.showModal();
    input.focus();
    input.dispatchEvent(new CustomEvent("palette-opened"));
  }

  function choose(option) {
    dialog.close();
    option.click();
  }

  attachCombobox(input, results, choose);
  results.addEventListener("htmx:afterSwap", () => {
    status.textContent = results.querySelector("[data-palette-status]")?.textContent ?? "";
  });
  // The browser's own way to a link or a form; the palette only gets out of the way.
  results.addEventListener("click", (event) => {
    if (event.target.closest("[role=option]") && !event.ctrlKey && !event.metaKey) dialog.close();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-closes-palette]")) dialog.close();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-opens='palette']")) open();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || event.altKey || event.shiftKey || event.ctrlKey === event.metaKey) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });
  if (/^Mac|^iP/.test(navigator.platform)) {
    for (const keys of document.querySelectorAll("[data-palette-keys]")) keys.textContent = "⌘ K";
  }
}

if (dialog) start();
