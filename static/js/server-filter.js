// The server in a filter of a list, where there are too many for a menu: found by a part of its name.
import { attachCombobox } from "./combobox.js";

function attach(input) {
  const list = document.getElementById(input.getAttribute("aria-controls"));
  let taken = input.value;

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  // Told by the field's surroundings: what the field itself reports is a part of a name.
  function take(value) {
    close();
    input.value = value;
    if (value === taken) return;
    taken = value;
    input.parentElement.dispatchEvent(new Event("change", { bubbles: true }));
  }

  list.addEventListener("htmx:afterSwap", () => { list.hidden = document.activeElement !== input; });
  input.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow") && list.childElementCount) list.hidden = false;
    if (event.key !== "Escape") return;
    input.value = taken;
    close();
  });
  attachCombobox(input, list, (option) => take(option.dataset.value));
  // Before the field loses the focus, and with it the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) take(option.dataset.value);
  });
  input.addEventListener("change", (event) => event.stopPropagation());
  input.addEventListener("focus", () => input.select());
  // A part of a name is no server: what was chosen before stays, and an emptied field is any server.
  input.addEventListener("blur", () => take(input.value.trim() ? taken : ""));
}

for (const input of document.querySelectorAll("[data-server-filter]")) attach(input);
