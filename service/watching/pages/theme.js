"use strict";
// Light or dark: as the system has it, until somebody says otherwise; what was said is remembered where the browser allows it.
{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const KEY = "duly-theme";
  const remembered = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem(KEY, theme); } catch { /* a page from a file may have no storage */ } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show in ${isDark() ? "light" : "dark"} colours`);
  };
  const known = remembered();
  if (known === "light" || known === "dark") root.dataset.theme = known;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  button.hidden = false;
  label();
}
