"use strict";
// Flame graph: by Python stack, by module, by call. Wide is expensive; below is what it is made of.
const FLAME_ROW = 18, FLAME_WORDS = {stack: "by Python stack", module: "by module", call: "by call"};
function flameTree(graph, libraries) {
  // With library frames hidden, what they called moves up to the user's frame around them.
  const root = {name: graph.names[graph.name[0]], total: graph.total[0], children: new Map(), first: 0};
  const node = new Array(graph.parent.length);
  node[0] = root;
  for (let i = 1; i < graph.parent.length; i++) {
    const above = node[graph.parent[i]] || root;
    if (graph.library[i] && !libraries) { node[i] = above; continue; }
    const name = graph.names[graph.name[i]];
    let made = above.children.get(name);
    if (!made) above.children.set(name, made = {name, total: 0, children: new Map(), above, first: i, library: graph.library[i]});
    made.total += graph.total[i];
    node[i] = made;
  }
  return root;
}
class Flame {
  constructor(state, changed) {
    this.kinds = Object.keys(D.flame);
    this.state = {by: this.kinds[0], ...state}; this.changed = changed;
    if (!this.kinds.includes(this.state.by)) this.state.by = this.kinds[0];
    this.canvas = el("canvas", {tabindex: "0", role: "img", "aria-label": "Flame graph; the table below has the same numbers"});
    this.search = el("input", {type: "search", placeholder: "Search (press /)", "aria-label": "Search frames", value: this.state.q || "", oninput: () => { this.state.q = this.search.value; this.draw(); this.changed(this.state); }});
    this.status = el("span", {class: "dim", role: "status"});
    const toggle = (key, text) => el("button", {type: "button", "aria-pressed": String(Boolean(this.state[key])), onclick: () => this.changed({...this.state, [key]: this.state[key] ? "" : "1"}, true)}, text);
    this.element = el("div", {}, el("div", {class: "tools"}, this.kinds.map((k) => el("button", {type: "button", "aria-pressed": String(k === this.state.by), onclick: () => this.changed({...this.state, by: k}, true)}, FLAME_WORDS[k])),
      this.search, this.status, toggle("order", "In time order"), this.state.by === "stack" ? toggle("libraries", "Library frames") : null,
      el("button", {type: "button", onclick: () => this.zoom(this.root)}, "Whole")), el("div", {class: "lanes"}, this.canvas),
      D.flame[this.state.by].left_out ? el("p", {class: "dim"}, `${D.flame[this.state.by].left_out.toLocaleString("en")} of the smallest frames are left out.`) : null);
    this.root = flameTree(D.flame[this.state.by], Boolean(this.state.libraries) || this.state.by !== "stack");
    this.top = this.root;
    this.canvas.addEventListener("click", (e) => { const box = this.at(e); if (box) this.zoom(box.node); });
    this.canvas.addEventListener("pointermove", (e) => { const box = this.at(e); if (box) tip.show(`${box.node.name}\n${format.time(box.node.total)}, ${format.share(box.node.total / this.root.total)} of all`, e.clientX, e.clientY); else tip.hide(); });
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("keydown", (e) => { if (e.key === "Escape") this.zoom(this.root); if (e.key === "ArrowUp" && this.top.above) this.zoom(this.top.above);
      if (e.key === "ArrowDown") { const child = this.ordered(this.top)[0]; if (child) this.zoom(child); } });
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
  }
  ordered(node) { return [...node.children.values()].sort(this.state.order ? (a, b) => a.first - b.first : (a, b) => b.total - a.total); }
  zoom(node) { this.top = node; this.draw(); }
  at(e) { return this.boxes.find((b) => e.offsetX >= b.x && e.offsetX < b.x + b.w && e.offsetY >= b.y && e.offsetY < b.y + FLAME_ROW - 1); }
  draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    this.boxes = [];
    const way = [];
    for (let n = this.top.above; n; n = n.above) way.unshift(n);
    way.forEach((node, depth) => this.boxes.push({node, x: 0, w: width, y: depth * FLAME_ROW, above: true}));
    const place = (node, x, w, depth) => {
      this.boxes.push({node, x, w, y: depth * FLAME_ROW});
      let at = x;
      for (const child of this.ordered(node)) {
        const part = node.total ? w * child.total / node.total : 0;
        if (part < 0.5) { if (!this.state.order) break; at += part; continue; }
        place(child, at, part, depth + 1);
        at += part;
      }
    };
    place(this.top, 0, width, way.length);
    const height = Math.max(...this.boxes.map((b) => b.y)) + FLAME_ROW + 4, ratio = devicePixelRatio || 1;
    this.canvas.style.height = height + "px"; this.canvas.width = width * ratio; this.canvas.height = height * ratio;
    const g = this.canvas.getContext("2d"), word = (this.state.q || "").toLowerCase();
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
    for (const b of this.boxes) {
      const hit = word && b.node.name.toLowerCase().includes(word);
      g.globalAlpha = b.above ? 0.45 : word && !hit ? 0.3 : 1;
      const fill = colour(this.tone(b.node));
      g.fillStyle = fill; g.fillRect(b.x, b.y, Math.max(b.w - 1, 0.5), FLAME_ROW - 1);
      if (b.w > 30) { g.save(); g.beginPath(); g.rect(b.x, b.y, b.w - 4, FLAME_ROW); g.clip(); g.fillStyle = inkOn(fill); g.fillText(b.node.name, b.x + 4, b.y + FLAME_ROW / 2); g.restore(); }
    }
    g.globalAlpha = 1;
    if (word) { const sum = this.sum(this.root, word); this.status.textContent = `${format.time(sum)}, ${format.share(sum / this.root.total)}`; } else this.status.textContent = "";
  }
  tone(node) {
    const name = node.name;
    if (/backward|Backward/.test(name)) return "backward";
    if (name.startsWith("Optimizer.")) return "optimizer";
    if (name.startsWith("enumerate(DataLoader)")) return "data";
    if (name.includes("::") || name === "forward") return "forward";
    return node.library || !/\(.+:\d+\)$/.test(name) ? "other" : "python";
  }
  sum(node, word) {  // a frame inside another that matches is not added twice
    if (node.name.toLowerCase().includes(word)) return node.total;
    let found = 0;
    for (const child of node.children.values()) found += this.sum(child, word);
    return found;
  }
}
function flamePage(state, changed) {
  const made = new Flame(state, changed);
  const rows = [];
  (function walk(node, depth) { rows.push({name: node.name, total: node.total, depth}); if (depth < 60) for (const child of node.children.values()) walk(child, depth + 1); })(made.root, 0);
  const table = el("details", {}, el("summary", {}, "As a table"));
  table.addEventListener("toggle", () => { if (table.open && table.children.length < 2) table.append(new DataTable([{key: "name", title: "Frame", kind: "text", indent: "depth"}, {key: "total", title: "Time", kind: "time", always: true}], rows, {}, null, {ordered: true}).element); });
  return [made.element, table];
}
