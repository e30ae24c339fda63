// Dark where the console is: as chosen there, else as the system is.
const root = document.documentElement;
const system = window.matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  const { theme } = root.dataset;
  root.classList.toggle("dark-mode", theme === "dark" || (theme === "system" && system.matches));
}

applyTheme();
system.addEventListener("change", applyTheme);
