// The inspector works without this file: it adds the keys, the switch of the theme, and the slider that shows at once.
"use strict";

const root = document.documentElement;
const kept = (() => { try { return localStorage.getItem("memci-theme"); } catch { return null; } })();
if (kept) root.dataset.theme = kept;

function switchTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("memci-theme", root.dataset.theme); } catch { /* it lasts for this page */ }
}

let asked = 0;

async function show(form, place) {
  const url = `${form.action.split("?")[0]}?${new URLSearchParams(new FormData(form))}`;
  const mine = ++asked;
  const answer = await fetch(url, { credentials: "same-origin" });
  const text = await answer.text();
  if (mine !== asked) return; // the slider went on
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector(place);
  if (!fresh) { location.assign(url); return; }
  document.querySelector(place).replaceWith(document.adoptNode(fresh));
  history.replaceState(null, "", url);
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  document.querySelector("#theme")?.addEventListener("click", switchTheme);
  const help = document.querySelector("#help");
  document.querySelector("#keys")?.addEventListener("click", () => help.showModal());

  for (const field of document.querySelectorAll("[data-live]")) {
    let pause = 0;
    field.addEventListener("input", () => {
      if (field.dataset.output) document.querySelector(field.dataset.output).value = field.value;
      clearTimeout(pause);
      pause = setTimeout(() => show(field.form, field.dataset.live), 120);
    });
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.key === "j" || event.key === "k") {
      document.querySelector(`main a[rel=${event.key === "j" ? "next" : "prev"}]`)?.click();
    } else if (event.key === "t") switchTheme();
    else if (event.key === "?") help?.showModal();
    else if (/^[1-7]$/.test(event.key)) document.querySelectorAll(".tabs a")[event.key - 1]?.click();
  });
});
