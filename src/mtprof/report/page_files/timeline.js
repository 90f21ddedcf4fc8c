"use strict";
// Threads, streams and processes side by side. Each depth of a lane is a row of events that do not overlap, sorted by time:
// drawing looks at as many events as there are pixels, however many events there are.
const ROW = 17, GAP = 22, GUTTER = 150, AXIS = 20;
const LEGEND = [["forward and other ops", "forward"], ["backward", "backward"], ["optimizer", "optimizer"], ["data", "data"], ["communication", "communication"], ["device", "device"], ["Python", "python"], ["scopes, other", "other"]];
class Timeline {
  constructor(state, changed) {
    this.state = state; this.changed = changed; this.t = D.timeline;
    this.canvas = el("canvas", {tabindex: "0", role: "application", "aria-label": "Timeline. W and S zoom, A and D pan, F fits, arrow keys walk between events, Enter adds up what ran during the selected one."});
    this.detail = el("aside", {class: "detail", "aria-live": "polite"}, this.hint());
    this.search = el("input", {type: "search", placeholder: "Search (press /)", "aria-label": "Search events", value: state.q || "", oninput: () => this.find()});
    this.hits = el("span", {class: "dim", role: "status"});
    const note = this.t.shown < this.t.total ? `Down-sampled to the longest ${this.t.shown.toLocaleString("en")} of ${this.t.total.toLocaleString("en")} events; totals on other pages are exact.` : "";
    this.element = el("div", {}, el("div", {class: "tools"}, this.search, this.hits, el("button", {type: "button", onclick: () => this.fit()}, "Fit (f)"),
      el("span", {class: "dim"}, "Zoom with the wheel, pan by dragging, add up a span with Shift and drag. " + note)),
      this.legend = el("div"),
      el("div", {class: "split"}, el("div", {class: "lanes"}, this.canvas), this.detail));
    this.ready = this.load();
  }
  withSteps(c) {  // one more lane, of the steps, which are not events
    const {number, start, duration} = this.t.steps, others = this.t.lanes.length, names = this.t.names.length, first = c.start.length;
    this.lanes = [...this.t.lanes]; this.names = [...this.t.names, ...number.map((n) => `step ${n}`)];
    if (!number.length) return c;
    this.lanes.push({label: "steps", group: "", steps: true, main: true, device: false});
    const more = {start, duration, lane: number.map(() => others), depth: number.map(() => 0), name: number.map((_, i) => names + i), phase: number.map(() => this.t.phases.indexOf("other")), row: number.map(() => -1)};
    return Object.fromEntries(Object.entries(c).map(([key, column]) => { const all = new Float64Array(first + number.length); all.set(column); all.set(more[key], first); return [key, all]; }));
  }
  hint() { return el("p", {class: "dim"}, "Click an event for its figures, or drag with Shift to add up a span."); }
  async load() {
    const c = this.withSteps(await unpackAll(this.t.columns));
    const seen = new Set(c.phase);
    this.legend.replaceWith(legendOf(LEGEND.filter(([, key]) => seen.has(this.t.phases.indexOf(key)))));
    this.launched = await unpackAll(this.t.launched);
    this.arrows = new Map();
    for (let i = 0; i < this.launched.host.length; i++) this.arrows.set(this.launched.device[i], this.launched.host[i]);
    this.partners = new Map([...this.arrows].map(([d, h]) => [h, d]));
    this.c = c;
    this.rows = [];  // {lane, depth, events}
    let y = AXIS;
    const byLane = this.lanes.map(() => []);
    for (let i = 0; i < c.start.length; i++) {
      const depths = byLane[c.lane[i]];
      (depths[c.depth[i]] ||= []).push(i);
    }
    this.laneTop = [];
    const order = this.lanes.map((_, i) => i).sort((a, b) => (this.lanes[a].device - this.lanes[b].device) || (this.lanes[b].main - this.lanes[a].main) || (Boolean(this.lanes[b].steps) - Boolean(this.lanes[a].steps)) || a - b);
    for (const lane of order) {
      this.laneTop[lane] = y;
      y += 4;
      byLane[lane].forEach((events, depth) => { this.rows.push({lane, depth, events, y: y + depth * ROW}); });
      y += Math.max(byLane[lane].length * ROW, this.lanes[lane].steps ? ROW : 2 * ROW) + 4;
    }
    this.height = y + 10;
    this.scroll = 0;
    this.from = Number(this.state.from) - this.t.origin || 0;
    this.span = Number(this.state.span) || Math.max(this.t.span, 1);
    if (this.state.from === undefined) this.from = 0;
    if (this.state.e !== undefined) { const event = c.row.indexOf(Number(this.state.e)); if (event >= 0) this.chosen = event; }
    this.bind();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    if (this.state.q) this.find();
    if (this.chosen !== undefined) this.select(this.chosen);
  }
  resize() {
    const width = this.canvas.parentElement.clientWidth, height = Math.max(200, Math.min(this.height, innerHeight - this.canvas.getBoundingClientRect().top - scrollY - 24, 4000), Math.min(this.height, innerHeight * 0.5));
    const ratio = devicePixelRatio || 1;
    this.width = width; this.view = height;
    this.canvas.style.height = height + "px";
    this.canvas.width = width * ratio; this.canvas.height = height * ratio;
    this.draw();
  }
  x(time) { return GUTTER + (time - this.from) / this.span * (this.width - GUTTER); }
  time(x) { return this.from + (x - GUTTER) / (this.width - GUTTER) * this.span; }
  draw() { if (!this.pending) { this.pending = true; requestAnimationFrame(() => { this.pending = false; this.paint(); }); } }
  paint() {
    const g = this.canvas.getContext("2d"), ratio = devicePixelRatio || 1, c = this.c;
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--text"), dim = style.getPropertyValue("--dim"), line = style.getPropertyValue("--line"), panel = style.getPropertyValue("--panel"), back = style.getPropertyValue("--back");
    const fills = this.t.phases.map(colour);
    const inks = fills.map(inkOn);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, this.view);
    g.font = "11px system-ui, sans-serif"; g.textBaseline = "middle";
    const end = this.from + this.span;
    const stride = strideFor(this.span, (this.width - GUTTER) / TICK_WIDTH);
    const ticks = [];
    for (let t = Math.ceil(this.from / stride) * stride; t < end; t += stride) if (this.x(t) >= GUTTER) ticks.push(t);
    g.strokeStyle = line; g.lineWidth = 1;
    for (const t of ticks) { const x = Math.round(this.x(t)) + 0.5; g.beginPath(); g.moveTo(x, AXIS); g.lineTo(x, this.view); g.stroke(); }
    let drawn = 0;
    for (const row of this.rows) {
      const y = row.y - this.scroll;
      if (y < AXIS - ROW || y > this.view) continue;
      const events = row.events;
      let low = 0, high = events.length;
      while (low < high) { const mid = (low + high) >> 1; if (c.start[events[mid]] + c.duration[events[mid]] < this.from) low = mid + 1; else high = mid; }
      for (let i = low; i < events.length;) {
        const event = events[i], start = c.start[event];
        if (start > end) break;
        const left = Math.max(this.x(start), GUTTER), right = Math.min(this.x(start + c.duration[event]), this.width);
        const hit = this.marks && this.marks[c.name[event]];
        g.globalAlpha = this.marks && !hit ? 0.2 : 1;
        g.fillStyle = fills[c.phase[event]];
        g.fillRect(left, y, Math.max(right - left - (right - left > 3 ? 1 : 0), 1), ROW - 2);
        drawn++;
        if (event === this.selected) { g.strokeStyle = text; g.lineWidth = 2; g.strokeRect(left, y, Math.max(right - left, 2), ROW - 2); }
        if (right - left > 36) {
          g.save(); g.beginPath(); g.rect(left, y, right - left - 3, ROW); g.clip();
          g.globalAlpha = 1; g.fillStyle = this.marks && !hit ? dim : inks[c.phase[event]]; g.fillText(this.names[c.name[event]], left + 3, y + ROW / 2); g.restore();
        }
        i++;
        if (right - left < 1) {  // the next event that begins in another pixel
          const next = this.time(Math.floor(left) + 1);
          let a = i, b = events.length;
          while (a < b) { const mid = (a + b) >> 1; if (c.start[events[mid]] + c.duration[events[mid]] < next) a = mid + 1; else b = mid; }
          i = Math.max(i, a);
        }
      }
      g.globalAlpha = 1;
    }
    this.drawnEvents = drawn;
    g.fillStyle = panel; g.fillRect(0, 0, GUTTER, this.view);
    g.strokeStyle = line; g.lineWidth = 1;
    this.lanes.forEach((lane, i) => {
      const y = this.laneTop[i] - this.scroll;
      if (y < -GAP || y > this.view) return;
      g.beginPath(); g.moveTo(0, y + 0.5); g.lineTo(this.width, y + 0.5); g.stroke();
      g.save(); g.beginPath(); g.rect(0, y, GUTTER - 4, 40); g.clip();
      g.fillStyle = text; g.fillText(lane.label, 6, y + 13); g.fillStyle = dim; if (!lane.steps) g.fillText(lane.group, 6, y + 28); g.restore();
    });
    g.fillStyle = back; g.fillRect(0, 0, this.width, AXIS); g.fillStyle = dim;
    for (const t of ticks) {
      const label = tickText(t, stride), x = this.x(t) + 3;
      if (x + g.measureText(label).width <= this.width) g.fillText(label, x, AXIS / 2);
    }
    if (this.hover !== undefined) this.arrow(g, this.hover, text);
    if (this.selection) {
      const [a, b] = this.selection.map((t) => this.x(t));
      g.globalAlpha = 0.2; g.fillStyle = text; g.fillRect(Math.min(a, b), AXIS, Math.abs(b - a), this.view); g.globalAlpha = 1;
    }
  }
  arrow(g, event, stroke) {
    const other = this.arrows.get(event) ?? this.partners.get(event);
    if (other === undefined) return;
    const [host, device] = this.arrows.has(event) ? [other, event] : [event, other];
    const place = (i, end) => [this.x(this.c.start[i] + (end ? this.c.duration[i] : 0)), this.yOf(i) + ROW / 2];
    const [x1, y1] = place(host, true), [x2, y2] = place(device, false);
    g.strokeStyle = stroke; g.lineWidth = 1.5; g.beginPath(); g.moveTo(x1, y1); g.bezierCurveTo(x1 + 40, y1, x2 - 40, y2, x2, y2); g.stroke();
    g.beginPath(); g.arc(x2, y2, 3, 0, 7); g.fillStyle = stroke; g.fill();
  }
  yOf(event) { const row = this.rows.find((r) => r.lane === this.c.lane[event] && r.depth === this.c.depth[event]); return row.y - this.scroll; }
  at(x, y) {
    if (x < GUTTER || y < AXIS) return undefined;
    const row = this.rows.find((r) => y >= r.y - this.scroll && y < r.y - this.scroll + ROW - 1);
    if (!row) return undefined;
    const time = this.time(x), slack = this.span / (this.width - GUTTER), c = this.c;
    let low = 0, high = row.events.length;
    while (low < high) { const mid = (low + high) >> 1; if (c.start[row.events[mid]] <= time) low = mid + 1; else high = mid; }
    for (const event of [row.events[low - 1], row.events[low]]) {
      if (event !== undefined && c.start[event] - slack <= time && time <= c.start[event] + c.duration[event] + slack) return event;
    }
    return undefined;
  }
  bind() {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / this.width * this.span, 0);
      else if (e.offsetX < GUTTER) this.pan(0, e.deltaY);
      else this.zoom(e.deltaY > 0 ? 1.2 : 1 / 1.2, this.time(e.offsetX));
    }, {passive: false});
    let down = null;
    canvas.addEventListener("pointerdown", (e) => { down = {x: e.offsetX, y: e.offsetY, from: this.from, scroll: this.scroll, shift: e.shiftKey, moved: false}; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => {
      if (down) {
        down.moved ||= Math.abs(e.offsetX - down.x) + Math.abs(e.offsetY - down.y) > 3;
        if (down.shift) { this.selection = [this.time(down.x), this.time(e.offsetX)]; this.draw(); return; }
        this.from = down.from - (e.offsetX - down.x) / (this.width - GUTTER) * this.span;
        this.scroll = Math.max(0, Math.min(down.scroll - (e.offsetY - down.y), this.height - this.view));
        this.draw(); return;
      }
      const event = this.at(e.offsetX, e.offsetY);
      if (event !== this.hover) { this.hover = event; this.draw(); }
      const lane = e.offsetX < GUTTER ? this.lanes[this.laneTop.findLastIndex((top, i) => top !== undefined && e.offsetY >= top - this.scroll && this.laneTop.every((other) => !(other > top && e.offsetY >= other - this.scroll)))] : undefined;
      if (lane) tip.show(`${lane.label}\n${lane.group}`.trim(), e.clientX, e.clientY);
      else if (event === undefined) tip.hide();
      else tip.show(`${this.names[this.c.name[event]]}\n${format.time(this.c.duration[event])}`, e.clientX, e.clientY);
    });
    canvas.addEventListener("pointerleave", () => { tip.hide(); this.hover = undefined; this.draw(); });
    canvas.addEventListener("pointerup", (e) => {
      const was = down; down = null;
      if (!was) return;
      if (was.shift && was.moved) this.total(); else if (!was.moved) { this.selection = null; this.select(this.at(e.offsetX, e.offsetY)); }
      this.remember();
    });
    canvas.addEventListener("keydown", (e) => {
      const middle = this.from + this.span / 2;
      const act = {w: () => this.zoom(1 / 1.3, middle), s: () => this.zoom(1.3, middle), a: () => this.pan(-this.span / 6, 0), d: () => this.pan(this.span / 6, 0), f: () => this.fit(),
        ArrowRight: () => this.walk(1, 0), ArrowLeft: () => this.walk(-1, 0), ArrowUp: () => this.walk(0, -1), ArrowDown: () => this.walk(0, 1), Enter: () => this.totalChosen()}[e.key];
      if (act && !e.ctrlKey && !e.metaKey) { e.preventDefault(); act(); this.remember(); }
    });
  }
  zoom(factor, around) {
    const span = Math.min(Math.max(this.span * factor, 20), this.t.span * 1.5);
    this.from = around - (around - this.from) * span / this.span; this.span = span; this.draw();
  }
  pan(time, y) { this.from += time; this.scroll = Math.max(0, Math.min(this.scroll + y, this.height - this.view)); this.draw(); }
  fit() { this.from = 0; this.span = Math.max(this.t.span, 1); this.scroll = 0; this.draw(); this.remember(); }
  remember() { this.changed({q: this.search.value, from: Math.round(this.from + this.t.origin), span: Math.round(this.span), e: this.selected === undefined ? "" : this.c.row[this.selected]}); }
  walk(side, level) {
    const c = this.c;
    if (this.selected === undefined) { this.select(this.rows[0] && this.rows[0].events[0]); return; }
    const event = this.selected, lane = c.lane[event];
    const row = this.rows.find((r) => r.lane === lane && r.depth === c.depth[event] + level);
    if (!row) return;
    if (side) { const next = row.events[row.events.indexOf(event) + side]; if (next !== undefined) this.select(next, true); return; }
    const inside = level < 0 ? (i) => c.start[i] <= c.start[event] && c.start[i] + c.duration[i] >= c.start[event] : (i) => c.start[i] >= c.start[event] && c.start[i] <= c.start[event] + c.duration[event];
    const found = row.events.find(inside);
    if (found !== undefined) this.select(found, true);
  }
  select(event, follow) {
    this.selected = event;
    if (event === undefined) { this.detail.replaceChildren(this.hint()); this.draw(); return; }
    const c = this.c, name = this.names[c.name[event]], lane = this.lanes[c.lane[event]];
    if (follow && (c.start[event] < this.from || c.start[event] + c.duration[event] > this.from + this.span)) {
      this.from = c.start[event] - this.span / 10;
      if (c.duration[event] > this.span * 0.8) { this.span = c.duration[event] * 1.25; this.from = c.start[event] - c.duration[event] * 0.1; }
    }
    let calls = 0, sum = 0;
    for (let i = 0; i < c.name.length; i++) if (c.name[i] === c.name[event]) { calls++; sum += c.duration[i]; }
    this.detail.replaceChildren(el("h3", {}, name), el("dl", {class: "figures"}, [["took", format.time(c.duration[event])], ["began at", format.time(c.start[event] + this.t.origin)],
      ["self", format.time(this.own(event))], ["share of the view", format.share(c.duration[event] / this.span)], ["lane", [lane.label, lane.group].filter(Boolean).join(", ")], ["part of", this.t.phases[c.phase[event]]], ["events of this name", format.count(calls)], ["together", format.time(sum)]]
      .flatMap(([k, v]) => [el("dt", {}, k), el("dd", {title: k === "took" ? exact.time(c.duration[event]) : null}, v)])),
      el("p", {}, el("a", {href: `#/operators?q=${encodeURIComponent(name)}`}, "Its rows in Operators"), " · ", el("button", {type: "button", onclick: () => { this.from = c.start[event] - c.duration[event] * 0.05; this.span = Math.max(c.duration[event] * 1.1, 20); this.draw(); this.remember(); }}, "Zoom to it")));
    this.draw();
  }
  totalChosen() {  // a drag with Shift for the keyboard: the span of the selected event, or the view
    const event = this.selected;
    this.selection = event === undefined ? [this.from, this.from + this.span] : [this.c.start[event], this.c.start[event] + this.c.duration[event]];
    this.total(); this.draw();
  }
  own(event) {  // without what is drawn inside it
    const c = this.c, end = c.start[event] + c.duration[event];
    let inside = 0;
    for (let i = event + 1; i < c.start.length && c.lane[i] === c.lane[event] && c.start[i] < end; i++) if (c.depth[i] === c.depth[event] + 1) inside += c.duration[i];
    return Math.max(0, c.duration[event] - inside);
  }
  total() {
    const [a, b] = [...this.selection].sort((x, y) => x - y), c = this.c;
    const own = new Map(), last = [];
    const add = (i, value, calls) => { const e = own.get(c.name[i]) || [0, 0]; e[0] += value; e[1] += calls; own.set(c.name[i], e); };
    let lane = -1;
    for (let i = 0; i < c.start.length; i++) {
      if (c.lane[i] !== lane) { lane = c.lane[i]; last.length = 0; }
      if (this.lanes[lane].steps) continue;
      last[c.depth[i]] = i;
      const part = Math.min(c.start[i] + c.duration[i], b) - Math.max(c.start[i], a);
      if (part <= 0) continue;
      add(i, part, 1);
      if (c.depth[i] && last[c.depth[i] - 1] !== undefined) add(last[c.depth[i] - 1], -part, 0);
    }
    const rows = [...own].map(([name, [time, calls]]) => ({name: this.names[name], time, calls})).filter((r) => r.calls);
    this.detail.replaceChildren(el("h3", {}, `Selected: ${format.time(b - a)}`), el("p", {class: "dim"}, "Self time by name inside the span, over all lanes."),
      new DataTable([{key: "name", title: "Name", kind: "text"}, {key: "time", title: "Self time", kind: "time", share: true, always: true}, {key: "calls", title: "Events", kind: "count"}], rows, {}, null, {sort: "time", label: "Self time in the span"}).element);
  }
  find() {
    const word = this.search.value.toLowerCase();
    this.marks = word ? this.names.map((name) => name.toLowerCase().includes(word)) : null;
    let hits = 0, sum = 0;
    if (this.marks) for (let i = 0; i < this.c.name.length; i++) if (this.marks[this.c.name[i]]) { hits++; sum += this.c.duration[i]; }
    this.hits.textContent = word ? `${hits.toLocaleString("en")} events, ${format.time(sum)}` : "";
    this.draw(); this.remember();
  }
}
const TICK_WIDTH = 70;  // room for a label
function strideFor(span, most) {  // the smallest of 1, 2, 5, 10, … whose ticks fit
  const least = span / Math.max(most, 1), step = 10 ** Math.floor(Math.log10(least));
  return step * [1, 2, 5, 10].find((factor) => factor * step >= least * 0.9999);
}
function tickText(time, stride) {  // enough digits to distinguish two ticks
  const [size, unit] = TIMES.find(([size]) => Math.abs(time) >= size * 0.9995) || [1, "ns"];
  return time === 0 ? "0" : `${(time / size).toFixed(Math.min(9, Math.max(0, Math.ceil(-Math.log10(stride / size) - 1e-9))))} ${unit}`;
}
function timelinePage(state, changed) {
  if (!D.timeline.total) return [el("p", {class: "empty"}, "Nothing was recorded.")];
  const made = new Timeline(state, changed);
  window.timeline = made;
  return [made.element];
}
