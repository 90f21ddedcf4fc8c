"use strict";
// Which page is shown. The address holds the state, so that a view can be sent to somebody.
const PAGES = {
  overview: ["Overview", overviewPage], operators: ["Operators", operatorsPage], timeline: ["Timeline", timelinePage], flame: ["Flame graph", flamePage],
  memory: ["Memory", memoryPage], modules: ["Modules", modulesPage], ...(D.compare ? {compare: ["Compare", comparePage]} : {}), run: ["Run", runPage],
};
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const state = Object.fromEntries(new URLSearchParams(query || ""));
  if (state.down !== undefined) state.down = state.down === "true";
  return [PAGES[path] ? path : "overview", state];
}
function hashOf(page, state) {
  const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== undefined && value !== "" && value !== null)).toString();
  return `#/${page}${query ? "?" + query : ""}`;
}
function show() {
  const [page, state] = address();
  tip.hide();
  for (const link of document.querySelectorAll("nav a")) if (link.dataset.page === page) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  const changed = (next, again) => { history.replaceState(null, "", hashOf(page, next)); if (again) show(); };
  const made = PAGES[page][1](state, changed).filter(Boolean);
  const main = document.getElementById("main");
  main.dataset.page = page;
  main.replaceChildren(...made);
}
document.getElementById("title").textContent = D.title;
document.getElementById("nav").append(...Object.entries(PAGES).map(([page, [title]]) => el("a", {href: `#/${page}`, "data-page": page}, title)));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.toggle("dark", !dark); root.classList.toggle("light", dark);
  show();
});
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea")) { if (event.key === "Escape") event.target.blur(); return; }
  if (event.key === "/") { const box = document.querySelector("main input[type=search]"); if (box) { event.preventDefault(); box.focus(); } }
  const number = Number(event.key) - 1, names = Object.keys(PAGES);
  if (!event.ctrlKey && !event.metaKey && !event.altKey && number >= 0 && number < names.length) location.hash = `#/${names[number]}`;
});
addEventListener("hashchange", show);
show();
