// Facts, buttons, pointer and keys.

function fact(name, value, detail, id) {
  const box = make("div"), text = make("dd", value);
  if (id) text.id = id;
  if (detail) text.append(make("small", ` ${detail}`));
  box.append(make("dt", name), text);
  element("facts").append(box);
  return text;
}
function describe() {
  element("facts").replaceChildren();
  const last = total.length - 1, scope = spanAt(times[peak]);
  const seen = new Set(data.segments.block.filter((_, i) => shown[kind[i]]));
  let made = 0;
  for (const block of seen) if (lives.get(block)[0] > 0) made += lives.get(block)[2];
  fact("Peak", sizeText(total[peak]), `at ${timeText(times[peak])}${scope ? `, in ${scope}` : ""}`, "peak")
    .dataset.bytes = total[peak];
  fact("At the start", sizeText(total[0]));
  fact("At the end", sizeText(total[last]), undefined, "final").dataset.bytes = total[last];
  fact("Blocks", seen.size.toLocaleString("en"), `${sizeText(made)} allocated in total`);
  fact("Recorded", timeText(duration));
}

function choices(parent, entries, chosen, choose) { // a group of buttons, one of them pressed
  const buttons = entries.map(([value, label]) => {
    const button = make("button", label);
    button.type = "button";
    button.dataset.value = value;
    button.setAttribute("aria-pressed", String(value === chosen));
    button.addEventListener("click", () => {
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
      choose(value);
    });
    return button;
  });
  parent.append(...buttons);
}

function legend() {
  LABELS.forEach((label, k) => {
    if (!sums[k].some(value => value)) return;
    const button = make("button");
    button.type = "button";
    button.dataset.category = data.categories[k];
    button.setAttribute("aria-pressed", "true");
    button.append(dot(k), label);
    button.addEventListener("click", () => {
      shown[k] = !shown[k];
      button.setAttribute("aria-pressed", String(shown[k]));
      const wasPeak = pinned === times[peak];
      sumShown();
      describe();
      pin(wasPeak ? times[peak] : pinned);
    });
    element("legend").append(button);
  });
}

// Reports the state, for whoever keeps it in an address; from the first view on.
let settled = false;
function remember() {
  if (settled) changed({by: grouping === "block" ? "" : grouping, q: element("filter").value, at: pinned === times[peak] ? "" : Math.round(pinned)});
}

function toPeak() {
  bringIntoView(times[peak]);
  pin(times[peak]);
}

let pressed = null;
canvas.addEventListener("pointerdown", event => { pressed = event.offsetX; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", event => {
  hovered = timeOf(event.offsetX);
  if (pressed !== null && Math.abs(event.offsetX - pressed) > 4)
    dragged = [timeOf(Math.min(pressed, event.offsetX)), timeOf(Math.max(pressed, event.offsetX))];
  draw();
  showTip(event.offsetX);
});
canvas.addEventListener("pointerup", event => {
  if (pressed === null) return;
  pressed = null;
  if (dragged === null) pin(timeOf(event.offsetX));
  else { const [low, high] = dragged; dragged = null; zoom(low, high); }
});
canvas.addEventListener("pointercancel", () => { pressed = dragged = null; draw(); });
canvas.addEventListener("pointerleave", () => { hovered = null; tip.hidden = true; draw(); });
canvas.addEventListener("dblclick", () => zoom(0, duration));
canvas.addEventListener("wheel", event => {
  if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
  event.preventDefault();
  zoomAround(timeOf(event.offsetX), 1.2 ** Math.sign(event.deltaY));
}, {passive: false});

const KEYS = {
  ArrowLeft: event => step(-1, event.shiftKey), ArrowRight: event => step(1, event.shiftKey),
  Home: () => pin(times[0]), End: () => pin(times[times.length - 1]),
  "+": () => zoomAround(pinned, .5), "=": () => zoomAround(pinned, .5), "-": () => zoomAround(pinned, 2),
  "0": () => zoom(0, duration), Escape: () => zoom(0, duration), p: toPeak,
};
function step(direction, far) {
  const here = pointAt(pinned), there = far ? pointAt(pinned + direction * (to - from) / 20) : here;
  const point = there === here ? here + direction : there;  // always to another change
  pin(times[Math.min(Math.max(point, 0), times.length - 1)]);
}
canvas.addEventListener("keydown", event => {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act(event);
  bringIntoView(pinned);
});

element("to-peak").addEventListener("click", toPeak);
element("reset").addEventListener("click", () => zoom(0, duration));
element("more").addEventListener("click", listMore);
element("filter").addEventListener("input", event => { wanted = event.target.value.trim().toLowerCase(); list(); remember(); });
new ResizeObserver(draw).observe(canvas);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

if (groupings[state.by] && (state.by !== "module" || data.modulesKnown)) grouping = state.by;
choices(element("grouping"), [["block", "Blocks"], ["category", "Category"], ["module", "Module"], ["op", "Op"],
                              ["place", "Place"]].filter(([value]) => value !== "module" || data.modulesKnown),
        grouping, value => { grouping = value; list(); remember(); });
element("then").hidden = !count;
if (!data.modulesKnown)
  element("note").textContent = "The recording has no modules (with_modules=True), so no block has a module.";
sumShown();
describe();
legend();
if (state.q) { element("filter").value = state.q; wanted = state.q.trim().toLowerCase(); }
pin(state.at ? Number(state.at) || 0 : times[peak]);
settled = true;
