// Comforts over pages that work without them: shortcuts, copying, menus that close, toasts, the theme at once.
const TOAST_STAYS_MS = 6000;
const UNDO_STAYS_MS = 30000;
const MOST_TOASTS = 4;
const CHORD_WITHIN_MS = 1000;

let chordStartedAt = -Infinity;

const KEYS_ARE_NOT_TEXT = ["button", "checkbox", "radio", "reset", "submit"];

function isTyping(element) {
  if (element.tagName === "INPUT") return !KEYS_ARE_NOT_TEXT.includes(element.type);
  return element.isContentEditable || ["TEXTAREA", "SELECT"].includes(element.tagName);
}

function openShortcuts() {
  const dialog = document.getElementById("shortcuts");
  if (dialog && !dialog.open) dialog.showModal();
}

function goTo(key) {
  const link = document.querySelector(`.menu a[data-shortcut="${CSS.escape(key)}"]`);
  if (link) link.click();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") closeMenus(null);
  if (isTyping(event.target)) return;
  if (event.timeStamp - chordStartedAt < CHORD_WITHIN_MS && event.key !== "g") {
    chordStartedAt = -Infinity;
    goTo(event.key);
  } else if (event.key === "g") {
    chordStartedAt = event.timeStamp;
  } else if (event.key === "?") {
    openShortcuts();
  } else if (event.key === "/") {
    const box = document.querySelector("[data-search]");
    if (!box) return;
    event.preventDefault();
    box.focus();
    box.select();
  }
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details[data-closes-outside][open]")) {
    if (!except || !menu.contains(except)) menu.open = false;
  }
  for (const panel of document.querySelectorAll("[data-closes-look]")) {
    if (!except || !panel.parentElement.contains(except)) closeLook(panel);
  }
}

// The switch beside it shows what is in force, so that closing needs no request.
function closeLook(panel) {
  const chosen = panel.parentElement.querySelector("input[type=radio]:checked");
  const hadFocus = panel.parentElement.contains(document.activeElement);
  panel.remove();
  if (hadFocus && chosen) chosen.focus();
}

// A switch shows what is in force again where its request has failed.
function putBack(event) {
  const form = event.detail.elt?.closest?.("form");
  if (form && form.closest(".switch")) form.reset();
}

// Rows of names and values: a new row is a copy of the last without what that one says.
function addPair(field) {
  const last = [...field.querySelectorAll("[data-pair]")].at(-1);
  const added = last.cloneNode(true);
  const [name, value] = added.querySelectorAll("input");
  for (const input of [name, value]) input.value = "";
  name.setAttribute("aria-label", `Name of the ${field.dataset.pairs}`);
  value.setAttribute("aria-label", `Value of the ${field.dataset.pairs}`);
  value.placeholder = field.dataset.hint;
  last.after(added);
  return name;
}

function removePair(pair, field) {
  if (field.querySelectorAll("[data-pair]").length === 1) addPair(field);
  pair.remove();
  field.querySelector("[data-adds-pair]").focus();
}

// Without a secure origin a browser offers no clipboard; the old way through a selection still works there.
function copyBySelection(text) {
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "visually-hidden";
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

async function copyText(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copyBySelection(text);
}

async function readText(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.text();
}

async function copyFrom(button) {
  const { copies, copiesFrom } = button.dataset;
  const label = button.querySelector("span");
  const before = label.textContent;
  try {
    await copyText(copies ? document.getElementById(copies).textContent : await readText(copiesFrom));
    label.textContent = "Copied";
  } catch {
    label.textContent = "Not copied";
  }
  button.focus();
  setTimeout(() => { label.textContent = before; }, 1500);
}

function onClick(event) {
  closeMenus(event.target);
  const copier = event.target.closest("[data-copies], [data-copies-from]");
  if (copier) copyFrom(copier);
  if (event.target.closest("[data-opens='shortcuts']")) openShortcuts();
  const field = event.target.closest("[data-pairs]");
  if (field && event.target.closest("[data-adds-pair]")) addPair(field).focus();
  if (field && event.target.closest("[data-removes-pair]")) removePair(event.target.closest("[data-pair]"), field);
  const toast = event.target.closest("[data-toast]");
  if (toast && !event.target.closest("button")) toast.remove();
}

// Ticks of a list: the head's box ticks them all, and the button says how many there are.
function countTicks(name) {
  const boxes = [...document.querySelectorAll(`tbody input[type=checkbox][name="${name}"]`)];
  const ticked = boxes.filter((box) => box.checked).length;
  for (const button of document.querySelectorAll(`[data-counts="${name}"]`)) {
    button.querySelector("[data-count]").textContent = ticked ? ` (${ticked})` : "";
    button.disabled = ticked === 0;
  }
  for (const head of document.querySelectorAll(`[data-ticks="${name}"]`)) {
    head.checked = ticked > 0 && ticked === boxes.length;
    head.indeterminate = ticked > 0 && ticked < boxes.length;
  }
}

function onTick(event) {
  const head = event.target.closest("[data-ticks]");
  if (head) {
    const boxes = document.querySelectorAll(`tbody input[type=checkbox][name="${head.dataset.ticks}"]`);
    for (const box of boxes) box.checked = head.checked;
  }
  countAllTicks();
}

function countAllTicks() {
  for (const button of document.querySelectorAll("[data-counts]")) countTicks(button.dataset.counts);
}

function showToast(text) {
  const toast = document.getElementById("toast-template").content.firstElementChild.cloneNode(true);
  toast.querySelector("div").textContent = text;
  document.getElementById("toasts").append(toast);
}

// Good news goes away by itself; of many, the newest stay. A toast is given its time once.
function timeToasts() {
  const toasts = [...document.querySelectorAll("#toasts [data-toast]")];
  for (const old of toasts.slice(0, -MOST_TOASTS)) old.remove();
  for (const toast of toasts.slice(-MOST_TOASTS)) {
    if (toast.dataset.toast === "error" || toast.dataset.timed) continue;
    toast.dataset.timed = "yes";
    setTimeout(() => toast.remove(), toast.dataset.toast === "undo" ? UNDO_STAYS_MS : TOAST_STAYS_MS);
  }
}

// What a part that was asked for amounts to, in one line: the whole of it is not read out at every key.
// What comes by itself is not told.
function announce(event) {
  const line = document.querySelector("[data-status]");
  if (!line || !event.detail.requestConfig?.triggeringEvent) return;
  const words = line.textContent.trim().replace(/\s+/g, " ");
  const place = document.getElementById("announcement");
  if (place.textContent !== words) place.textContent = words;
}

// A link to a filtered list says what is filtered, and nothing else.
function leaveOutEmpty(event) {
  const given = event.detail.formData;
  if (!event.target.matches("form.filters")) return;
  for (const [name, value] of [...given]) if (value === "") given.delete(name);
}

// Pages are written in UTC; a reader is told the time of their own zone.
const FULL_TIME = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
const CLOCK_TIME = new Intl.DateTimeFormat("sv-SE", { timeStyle: "medium" });
const ZONED_TIME = new Intl.DateTimeFormat("en-GB", { hour: "numeric", timeZoneName: "short" });

function zoneAt(moment) {
  return ZONED_TIME.formatToParts(moment).find((part) => part.type === "timeZoneName").value;
}

function tellLocalTimes() {
  for (const time of document.querySelectorAll("time[datetime]:not([data-local])")) {
    const moment = new Date(time.dateTime);
    time.dataset.local = "";
    if (Number.isNaN(moment.getTime())) continue;
    time.title = `${FULL_TIME.format(moment)} ${zoneAt(moment)}`;
    if ("clock" in time.dataset) time.textContent = CLOCK_TIME.format(moment);
  }
  for (const place of document.querySelectorAll("[data-zone]")) place.textContent = zoneAt(new Date());
}

async function chooseTheme(event) {
  const form = event.target.closest("[data-theme-form]");
  if (!form || !event.submitter) return;
  event.preventDefault();
  const theme = event.submitter.value;
  const body = new FormData(form);
  body.set("theme", theme);
  document.documentElement.dataset.bsTheme = theme;
  for (const button of document.querySelectorAll("[data-theme-form] button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
  document.dispatchEvent(new CustomEvent("theme-chosen"));
  await fetch(form.action, { method: "POST", body, redirect: "manual" });
}

function start() {
  for (const element of document.querySelectorAll("[data-opens], [data-needs-script]")) element.hidden = false;
  timeToasts();
  tellLocalTimes();
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", onClick);
  document.addEventListener("submit", chooseTheme);
  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-submits-on-change]");
    if (form) form.requestSubmit();
    if (event.target.type === "checkbox") onTick(event);
  });
  countAllTicks();
  document.addEventListener("htmx:responseError", putBack);
  document.addEventListener("htmx:sendError", putBack);
  document.addEventListener("htmx:responseError", (event) => {
    showToast(`The server answered with an error (${event.detail.xhr.status}). Reload the page to see it.`);
  });
  document.addEventListener("htmx:sendError", () => showToast("The server cannot be reached."));
  document.addEventListener("htmx:configRequest", leaveOutEmpty);
  document.addEventListener("htmx:oobAfterSwap", timeToasts);
  document.addEventListener("htmx:oobAfterSwap", tellLocalTimes);
  document.addEventListener("htmx:afterSettle", announce);
  document.addEventListener("htmx:afterSwap", () => {
    for (const element of document.querySelectorAll("[data-needs-script]")) element.hidden = false;
    countAllTicks();
    tellLocalTimes();
  });
}

start();
