// A text field with a list of options that the server writes: arrow keys move in the list while the field keeps the
// focus, Enter takes the option in place. Enter pressed before the answer has come takes the first of it.

export function attachCombobox(input, results, choose) {
  let active = null;
  let isPending = false;
  let isEntered = false;

  const options = () => results.hidden ? [] : [...results.querySelectorAll("[role=option]")];

  function activate(option) {
    active?.setAttribute("aria-selected", "false");
    active = option ?? null;
    if (!active) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    active.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", active.id);
    active.scrollIntoView({ block: "nearest" });
  }

  function move(step) {
    const all = options();
    if (!all.length) return;
    const from = active ? all.indexOf(active) : step > 0 ? -1 : all.length;
    activate(all[(from + step + all.length) % all.length]);
  }

  function onKey(event) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (isPending) isEntered = true;
      else if (active) choose(active);
    }
  }

  function onAnswer() {
    isPending = false;
    input.setAttribute("aria-expanded", String(options().length > 0));
    activate(options()[0]);
    if (isEntered && active) choose(active);
    isEntered = false;
  }

  input.addEventListener("keydown", onKey);
  input.addEventListener("input", () => { isPending = true; });
  results.addEventListener("htmx:afterSwap", onAnswer);
  results.addEventListener("mousemove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option && option !== active) activate(option);
  });
}
