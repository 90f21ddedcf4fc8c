"use strict";
// Chooses the page. The address holds the state, so a view can be sent to somebody.
const PAGES = {
  overview: ["Overview", overviewPage], operators: ["Operators", operatorsPage], timeline: ["Timeline", timelinePage], flame: ["Flame graph", flamePage],
  memory: ["Memory", memoryPage], modules: ["Modules", modulesPage], ...(D.ranks ? {ranks: ["Ranks", ranksPage]} : {}),
  ...(D.compare ? {compare: ["Compare", comparePage]} : {}), run: ["Run", runPage],
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
let shows = 0;
function show() {
  const [page, state] = address();
  tip.hide();
  for (const link of document.querySelectorAll("nav a")) if (link.dataset.page === page) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  const turn = ++shows, main = document.getElementById("main");
  main.dataset.page = page;
  main.dataset.shown = location.hash;
  const changed = (next, again) => {
    // A page that is still loading must not change the address when another is shown or about to be.
    if (turn !== shows || location.hash !== main.dataset.shown) return;
    history.replaceState(null, "", hashOf(page, next));
    main.dataset.shown = location.hash;
    if (again) show();
  };
  const made = PAGES[page][1](state, changed).filter(Boolean);
  main.replaceChildren(el("h2", {class: "unseen"}, PAGES[page][0]), ...made);
}
document.getElementById("title").textContent = D.title;
document.getElementById("title").title = D.title;
document.getElementById("nav").append(...Object.entries(PAGES).map(([page, [title]]) => el("a", {href: `#/${page}`, "data-page": page}, title)));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.toggle("dark", !dark); root.classList.toggle("light", dark);
  show();
});
const help = document.getElementById("help");
const KEYS = [["1 … 9", "a page"], ["/", "search"], ["Esc", "leave the search, zoom out of the flame graph"], ["w s", "timeline: zoom in and out"], ["a d", "timeline: left and right"], ["f", "timeline: fit"],
  ["← → ↑ ↓", "timeline, flame graph: previous, next, outer, inner"], ["Shift and drag", "timeline: add up a span"], ["Enter", "timeline: add up the span of the selected event, or the view"], ["← → Home End", "memory: from change to change"], ["+ − 0 p", "memory: zoom, whole, peak"], ["?", "this list"]];
help.append(el("h2", {}, "Keys"), el("dl", {class: "figures"}, KEYS.flatMap(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {class: "left"}, what)])),
  el("form", {method: "dialog"}, el("button", {}, "Close")));
document.getElementById("keys").addEventListener("click", () => help.showModal());
document.addEventListener("keydown", (event) => {
  const target = event.composedPath()[0];  // inside a shadow tree too
  if (target.matches && target.matches("input, select, textarea")) { if (event.key === "Escape") target.blur(); return; }
  if (event.key === "?") { help.showModal(); return; }
  if (event.key === "/") {
    const chart = document.querySelector("main .memory"), box = document.querySelector("main input[type=search]") || (chart && chart.shadowRoot.querySelector("input[type=search]"));
    if (box) { event.preventDefault(); box.focus(); box.select(); }
  }
  const number = Number(event.key) - 1, names = Object.keys(PAGES);
  if (!event.ctrlKey && !event.metaKey && !event.altKey && number >= 0 && number < names.length) location.hash = `#/${names[number]}`;
});
addEventListener("hashchange", show);
show();
