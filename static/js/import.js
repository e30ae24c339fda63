// A config file that is chosen or dropped is read here, in the browser, and goes the way of pasted text.
const MOST_BYTES = 900000;

const box = document.querySelector("[data-takes-file]");
const chooser = document.querySelector("[data-reads-file]");
const note = document.querySelector("[data-file-note]");

async function readFile(file) {
  if (file.size > MOST_BYTES) {
    note.textContent = `${file.name} is larger than 900 KB: import it with manage.py import_config.`;
    return;
  }
  box.value = await file.text();
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

chooser.addEventListener("change", async () => {
  const [file] = chooser.files;
  if (!file) return;
  await readFile(file);
  chooser.value = "";
});

box.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});

box.addEventListener("drop", (event) => {
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  readFile(file);
});
