"use strict";
// Flame graph: by Python stack, by module, by call. Width is time; the parts of a frame are below it.
const FLAME_ROW = 18, FLAME_WORDS = {stack: "by Python stack", module: "by module", call: "by call"};
function flameTree(graph, libraries) {
  // If library frames are hidden, what they called moves up to the user's frame around them.
  const root = {name: graph.names[graph.name[0]], total: graph.total[0], children: new Map(), order: 0, id: 0, phase: "other"};
  const node = new Array(graph.parent.length);
  node[0] = root;
  for (let i = 1; i < graph.parent.length; i++) {
    const above = node[graph.parent[i]] || root;
    if (graph.library[i] && !libraries) { node[i] = above; continue; }
    const name = graph.names[graph.name[i]], phase = graph.phases[graph.phase[i]], key = `${phase} ${name}`;
    let made = above.children.get(key);
    if (!made) above.children.set(key, made = {name, total: 0, children: new Map(), above, order: graph.order[i], id: i, phase});
    made.total += graph.total[i];
    made.order = Math.min(made.order, graph.order[i]);
    node[i] = made;
  }
  root.nodes = node;
  return root;
}
class Flame {
  constructor(state, changed) {
    this.kinds = Object.keys(D.flame);
    this.state = {by: this.kinds[0], ...state}; this.changed = changed;
    if (!this.kinds.includes(this.state.by)) this.state.by = this.kinds[0];
    const graph = D.flame[this.state.by];
    this.canvas = el("canvas", {tabindex: "0", role: "application", "aria-label": "Flame graph. Down goes into the largest part, Up out of it, Left and Right to its neighbours, Escape to the whole. The table below has the same numbers."});
    this.search = el("input", {type: "search", placeholder: "Search (press /)", "aria-label": "Search frames", value: this.state.q || "", oninput: () => { this.state.q = this.search.value; this.draw(); this.changed(this.state); }});
    this.status = el("span", {class: "dim", role: "status"});
    const toggle = (key, text, title) => el("button", {type: "button", title, "aria-pressed": String(Boolean(this.state[key])), onclick: () => this.changed({...this.state, zoom: "", [key]: this.state[key] ? "" : "1"}, true)}, text);
    this.element = el("div", {}, el("div", {class: "tools"}, this.kinds.map((k) => el("button", {type: "button", "aria-pressed": String(k === this.state.by), onclick: () => this.changed({...this.state, zoom: "", by: k}, true)}, FLAME_WORDS[k])),
      this.search, this.status, el("span", {class: "push"}), toggle("order", "In time order", "Order by first run instead of by time"), this.state.by === "stack" ? toggle("libraries", "Library frames", "Show the frames of libraries too") : null,
      el("button", {type: "button", onclick: () => this.zoom(this.root)}, "Whole")),
      legendOf([...new Set(graph.phase.map((p) => graph.phases[p]))].sort().map((phase) => [phase === "python" ? "Python" : phase, phase])),
      el("div", {class: "lanes"}, this.canvas),
      graph.left_out ? el("p", {class: "dim"}, `${graph.left_out.toLocaleString("en")} of the smallest frames are left out.`) : null);
    this.root = flameTree(graph, Boolean(this.state.libraries) || this.state.by !== "stack");
    this.top = (this.state.zoom && this.root.nodes[this.state.zoom]) || this.root;
    this.canvas.addEventListener("click", (e) => { const box = this.at(e); if (box) this.zoom(box.node); });
    this.canvas.addEventListener("pointermove", (e) => { const box = this.at(e); if (box) tip.show(this.words(box.node), e.clientX, e.clientY); else tip.hide(); });
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("keydown", (e) => {
      const beside = (side) => { const all = this.top.above ? this.ordered(this.top.above) : []; return all[all.indexOf(this.top) + side]; };
      const to = {Escape: () => this.root, ArrowUp: () => this.top.above, ArrowDown: () => this.ordered(this.top)[0], ArrowLeft: () => beside(-1), ArrowRight: () => beside(1)}[e.key];
      if (!to) return;
      e.preventDefault();
      const node = to();
      if (node) { this.zoom(node); this.status.textContent = this.words(node).replace("\n", ": "); }
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
  }
  words(node) { return `${node.name}\n${format.time(node.total)}, ${format.share(node.total / this.root.total)} of all${node.above && node.above !== this.root ? `, ${format.share(node.total / node.above.total)} of the frame above` : ""}`; }
  ordered(node) { return [...node.children.values()].sort(this.state.order ? (a, b) => a.order - b.order : (a, b) => b.total - a.total); }
  zoom(node) { this.top = node; this.state.zoom = node === this.root ? "" : String(node.id); this.draw(); this.changed(this.state); }
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
    const fills = {}, inks = {};
    for (const name of Object.keys(COLOURS)) { fills[name] = colour(name); inks[name] = inkOn(fills[name]); }
    const text = colour("--text"), back = colour("--back");
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
    for (const b of this.boxes) {
      const hit = word && b.node.name.toLowerCase().includes(word), faint = word ? !hit : b.above;
      g.globalAlpha = faint ? 0.35 : 1;
      g.fillStyle = fills[b.node.phase]; g.fillRect(b.x, b.y, Math.max(b.w - 1, 0.5), FLAME_ROW - 1);
      g.globalAlpha = 1;
      if (b.w > 30) { g.save(); g.beginPath(); g.rect(b.x, b.y, b.w - 4, FLAME_ROW); g.clip(); g.fillStyle = faint ? text : inks[b.node.phase]; g.fillText(b.node === this.root ? `all: ${format.time(this.root.total)}` : b.node.name, b.x + 4, b.y + FLAME_ROW / 2); g.restore(); }
      if (b.node === this.top && this.top !== this.root) { g.strokeStyle = back; g.lineWidth = 1; g.strokeRect(b.x + 1.5, b.y + 1.5, b.w - 4, FLAME_ROW - 4); }
    }
    if (word) { const sum = this.sum(this.root, word); this.status.textContent = `${format.time(sum)}, ${format.share(sum / this.root.total)} of all`; } else this.status.textContent = "";
  }
  sum(node, word) {  // a frame inside another match is not added twice
    if (node.name.toLowerCase().includes(word)) return node.total;
    let found = 0;
    for (const child of node.children.values()) found += this.sum(child, word);
    return found;
  }
}
function flamePage(state, changed) {
  const made = new Flame(state, changed);
  window.flame = made;
  if (!made.root.total) return [el("p", {class: "empty"}, "No ops or scopes of the host were recorded.")];
  const rows = [];
  (function walk(node, depth) { rows.push({name: node.name, total: node.total, depth}); if (depth < 60) for (const child of made.ordered(node)) walk(child, depth + 1); })(made.root, 0);
  const table = el("details", {}, el("summary", {}, "As a table"));
  table.addEventListener("toggle", () => { if (table.open && table.children.length < 2) table.append(new DataTable([{key: "name", title: "Frame", kind: "text", indent: "depth"}, {key: "total", title: "Time", kind: "time", share: true, whole: made.root.total, always: true}], rows, {}, null, {ordered: true, label: "Frames"}).element); });
  return [made.element, table];
}
