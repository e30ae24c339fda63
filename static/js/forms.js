// Forms: a switch that the arrow keys only move along, edits that are not lost by a click elsewhere, and fields that
// look as if they did not count while they do not.

// A browser reports every step of an arrow key as a choice. The step is kept back until Enter, Space or leaving.
const moved = new Set();
let isArrow = false;

function switchOf(element) {
  return element instanceof Element ? element.closest("form[data-saves-at-once]") : null;
}

function keepBack(form) {
  moved.add(form);
  form.dataset.unsaved = "yes";
  document.getElementById("announcement").textContent = "Press Enter to save this choice, Escape to go back.";
}

function settle(form) {
  moved.delete(form);
  delete form.dataset.unsaved;
}

function onSwitchKey(event) {
  const form = switchOf(event.target);
  isArrow = Boolean(form) && event.key.startsWith("Arrow");
  if (!form || !moved.has(form)) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    send(form);
  } else if (event.key === "Escape") {
    settle(form);
    form.reset();
    form.querySelector("input[type=radio]:checked")?.focus();
  }
}

function send(form) {
  settle(form);
  const chosen = form.querySelector("input[type=radio]:checked");
  if (chosen && !chosen.defaultChecked) chosen.dispatchEvent(new Event("change", { bubbles: true }));
}

function onSwitchChange(event) {
  const form = switchOf(event.target);
  if (!form || !isArrow || !event.isTrusted) return;
  event.stopPropagation();
  keepBack(form);
}

function onSwitchLeft(event) {
  const form = switchOf(event.target);
  if (form && moved.has(form) && !form.contains(event.relatedTarget)) send(form);
}

document.addEventListener("keydown", onSwitchKey);
document.addEventListener("pointerdown", () => { isArrow = false; });
document.addEventListener("change", onSwitchChange, true);
document.addEventListener("focusout", onSwitchLeft);

// Edits of a long form: asked about before the page is left without saving them.
const edited = new Set();

function onEdit(event) {
  const form = event.target.closest("form[data-guards-edits]");
  if (form) edited.add(form);
}

for (const form of document.querySelectorAll("form[data-guards-edits='edited']")) edited.add(form);
document.addEventListener("input", onEdit);
document.addEventListener("submit", (event) => edited.delete(event.target));
window.addEventListener("beforeunload", (event) => {
  if ([...edited].some((form) => form.isConnected)) event.preventDefault();
});

// `mode=auto,always` on a field: it counts while the field of that name has one of these values.
function showWhatCounts(form) {
  for (const field of form.querySelectorAll("[data-counts-when]")) {
    const [name, values] = field.dataset.countsWhen.split("=");
    const counts = values.split(",").includes(form.elements[name].value);
    field.closest(".setting").classList.toggle("idle", !counts);
    field.setAttribute("aria-disabled", String(!counts));
  }
}

const ruled = new Set([...document.querySelectorAll("[data-counts-when]")].map((field) => field.form));
for (const form of ruled) {
  showWhatCounts(form);
  form.addEventListener("change", () => showWhatCounts(form));
}
