"use strict";
// A table that sorts by any column, searches as one types, hides columns and copies as TSV.
class DataTable {
  // columns: {key, title, kind, share, hidden, help}; rows: objects; state: sort, down, q; changed(state)
  constructor(columns, rows, state, changed, options = {}) {
    this.columns = columns.filter((c) => c.always || c.kind === "text" || rows.some((r) => r[c.key]));
    this.rows = rows;
    this.changed = changed || (() => {});
    this.options = options;
    this.state = {sort: options.sort, down: true, q: "", ...state};
    if (!this.columns.some((c) => c.key === this.state.sort)) this.state.sort = options.sort;
    this.hidden = new Set(this.columns.filter((c) => c.hidden).map((c) => c.key));
    this.limit = 200;
    this.search = el("input", {type: "search", placeholder: "Search (press /)", "aria-label": "Search", value: this.state.q,
      oninput: () => { this.state.q = this.search.value; this.limit = 200; this.draw(); this.changed(this.state); }});
    this.count = el("span", {class: "dim", role: "status"});
    const choose = el("details", {}, el("summary", {}, "Columns"), this.columns.map((c) => el("label", {style: {display: "block"}},
      el("input", {type: "checkbox", checked: !this.hidden.has(c.key), onchange: (event) => {
        if (event.target.checked) this.hidden.delete(c.key); else this.hidden.add(c.key);
        this.draw();
      }}), " " + c.title)));
    this.body = el("div", {class: "scroll", tabindex: "0"});
    this.element = el("div", {}, el("div", {class: "tools"}, this.search, options.tools, this.count,
      el("button", {type: "button", onclick: () => this.copy()}, "Copy as TSV"), choose), this.body);
    this.draw();
  }
  visible() { return this.columns.filter((c) => !this.hidden.has(c.key)); }
  found() {
    const words = this.state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = this.columns.filter((c) => c.kind === "text").map((c) => c.key);
    const rows = !words.length ? [...this.rows] : this.rows.filter((row) => {
      const all = texts.map((key) => row[key] || "").join(" ").toLowerCase();
      return words.every((word) => all.includes(word));
    });
    const {sort, down} = this.state;
    if (sort && !this.options.ordered) rows.sort((a, b) => {
      const x = a[sort], y = b[sort];
      const order = typeof x === "string" || typeof y === "string" ? String(y || "").localeCompare(String(x || "")) : (x || 0) - (y || 0);
      return down ? -order : order;
    });
    return rows;
  }
  draw() {
    const columns = this.visible(), rows = this.found();
    const head = el("tr", {}, columns.map((c) => el("th", {class: c.kind === "text" ? "text" : null, scope: "col", title: c.help,
      "aria-sort": this.state.sort === c.key ? (this.state.down ? "descending" : "ascending") : "none"},
      this.options.ordered ? c.title : el("button", {type: "button", onclick: () => this.sortBy(c.key)},
        c.title + (this.state.sort === c.key ? (this.state.down ? " ▾" : " ▴") : "")))));
    const sums = {};
    for (const c of columns) if (c.share) sums[c.key] = rows.reduce((sum, row) => sum + Math.max(row[c.key] || 0, 0), 0);
    const lines = rows.slice(0, this.limit).map((row) => el("tr", {onclick: this.options.pick ? () => this.options.pick(row) : null},
      columns.map((c) => this.cell(row, c, sums))));
    const table = el("table", {}, el("thead", {}, head), el("tbody", {}, lines));
    const more = rows.length > this.limit ? el("p", {}, el("button", {type: "button", onclick: () => { this.limit += 1000; this.draw(); }},
      `Show more (${rows.length - this.limit} rows)`)) : null;
    this.body.replaceChildren(table, ...(more ? [more] : []));
    const total = this.options.total ? rows.reduce((sum, row) => sum + (row[this.options.total] || 0), 0) : null;
    this.count.textContent = `${rows.length.toLocaleString("en")} rows` + (total == null ? "" : `, ${format.time(total)}`);
  }
  cell(row, c, sums) {
    const value = row[c.key];
    const share = c.share && sums[c.key] ? Math.max(value || 0, 0) / sums[c.key] : null;
    const kind = c.kind || "count";
    const made = el("td", {class: kind === "text" ? "text" : share != null ? "bar" : null, title: kind === "text" ? null : exact[kind](value),
      style: share != null ? {"--share": Math.min(share, 1).toFixed(4)} : null});
    if (c.render) made.append(c.render(row, value));
    else if (kind === "text") made.append(...marked(format.text(value), this.state.q));
    else made.textContent = value == null ? "" : format[kind](value) + (c.share && share != null ? `  ${(100 * share).toFixed(1)} %` : "");
    if (c.indent) made.style.paddingLeft = `${0.6 + 1.2 * (row[c.indent] || 0)}rem`;
    return made;
  }
  sortBy(key) {
    this.state.down = this.state.sort === key ? !this.state.down : true;
    this.state.sort = key;
    this.draw();
    this.changed(this.state);
  }
  async copy() {
    const columns = this.visible();
    const lines = [columns.map((c) => c.title), ...this.found().map((row) => columns.map((c) => row[c.key] ?? ""))];
    const text = lines.map((line) => line.map((cell) => String(cell).replace(/[\t\n]/g, " ")).join("\t")).join("\n");
    try { await navigator.clipboard.writeText(text); this.count.textContent = "copied"; }
    catch { const area = el("textarea"); area.value = text; document.body.append(area); area.select(); document.execCommand("copy"); area.remove(); this.count.textContent = "copied"; }
  }
}
function marked(text, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [text];
  const parts = [], lower = text.toLowerCase();
  let at = 0;
  while (at < text.length) {
    let best = -1, length = 0;
    for (const word of words) {
      const place = lower.indexOf(word, at);
      if (place >= 0 && (best < 0 || place < best)) { best = place; length = word.length; }
    }
    if (best < 0) break;
    if (best > at) parts.push(text.slice(at, best));
    parts.push(el("mark", {}, text.slice(best, best + length)));
    at = best + length;
  }
  parts.push(text.slice(at));
  return parts;
}
