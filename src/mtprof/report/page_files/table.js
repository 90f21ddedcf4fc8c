"use strict";
// A table that sorts by any column, searches while you type, hides columns, opens rows and copies as TSV.
const UNITS = {time: " (ns)", change: " (ns)", size: " (bytes)"};
class DataTable {
  // columns: {key, title, kind, share, hidden, help}; rows: objects; state: sort, down, q, hide; changed(state)
  // options: sort, ordered (a tree: no sorting), total, tools, label, detail(row): elements below a row, or nothing
  constructor(columns, rows, state, changed, options = {}) {
    this.columns = columns.filter((c) => c.always || c.kind === "text" || rows.some((r) => r[c.key]));
    this.rows = rows;
    this.changed = changed || (() => {});
    this.options = options;
    this.state = {sort: options.sort, down: true, q: "", ...state};
    if (!this.columns.some((c) => c.key === this.state.sort)) this.state.sort = options.sort;
    const usual = this.columns.filter((c) => c.hidden).map((c) => c.key);
    this.hidden = new Set(this.state.hide === undefined ? usual : this.state.hide.split(" "));
    this.open = new Set();
    this.limit = 200;
    this.search = el("input", {type: "search", placeholder: "Search (press /)", "aria-label": "Search", value: this.state.q,
      oninput: () => { this.state.q = this.search.value; this.limit = 200; this.draw(); this.changed(this.state); }});
    this.count = el("span", {class: "dim", role: "status"});
    const choose = el("details", {class: "menu"}, el("summary", {}, "Columns"), el("div", {}, this.columns.map((c) => el("label", {},
      el("input", {type: "checkbox", checked: !this.hidden.has(c.key), onchange: (event) => {
        if (event.target.checked) this.hidden.delete(c.key); else this.hidden.add(c.key);
        this.state.hide = [...this.hidden].join(" ") || "none";
        this.draw(); this.changed(this.state);
      }}), " " + c.title))));
    this.body = el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": options.label || "Rows"});
    this.element = el("div", {}, el("div", {class: "tools"}, this.search, options.tools, this.count, el("span", {class: "push"}),
      el("button", {type: "button", title: "Exact values of the rows found, for a spreadsheet", onclick: () => this.copy()}, "Copy as TSV"), choose), this.body);
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
      "aria-sort": this.options.ordered ? null : this.state.sort === c.key ? (this.state.down ? "descending" : "ascending") : "none"},
      this.options.ordered ? c.title : el("button", {type: "button", onclick: () => this.sortBy(c.key)},
        c.title, el("span", {class: "arrow", "aria-hidden": "true"}, this.state.sort === c.key ? (this.state.down ? "▾" : "▴") : "")))));
    // Shares are of all rows, whatever the search.
    this.sums = Object.fromEntries(columns.filter((c) => c.share).map((c) => [c.key, c.whole || this.rows.reduce((sum, row) => sum + Math.max(row[c.key] || 0, 0), 0)]));
    const lines = rows.slice(0, this.limit).flatMap((row) => this.lines(row, columns));
    const table = el("table", {"aria-label": this.options.label || "Rows"}, el("thead", {}, head), el("tbody", {}, lines));
    const more = rows.length > this.limit ? [el("p", {class: "note"}, el("button", {type: "button", onclick: () => { this.limit += 1000; this.draw(); }},
      `Show ${Math.min(1000, rows.length - this.limit).toLocaleString("en")} more of ${(rows.length - this.limit).toLocaleString("en")} rows`))] : [];
    const none = rows.length ? [] : [el("p", {class: "note"}, this.rows.length ? "No row has all of these words." : "There are no rows.")];
    this.body.replaceChildren(table, ...more, ...none);
    const {total} = this.options, sum = total ? rows.reduce((all, row) => all + (row[total] || 0), 0) : null;
    const whole = total ? this.rows.reduce((all, row) => all + (row[total] || 0), 0) : null;
    this.count.textContent = `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "row" : "rows"}` + (total == null ? "" : `, ${format.time(sum)} ${this.columns.find((c) => c.key === total).title.toLowerCase()}${whole && rows.length < this.rows.length ? `, ${format.share(sum / whole)}` : ""}`);
  }
  lines(row, columns) {
    const detail = this.options.detail, open = this.open.has(row);
    const line = el("tr", {class: detail ? "opens" : null, onclick: detail ? (event) => { if (!event.target.closest("button, a")) this.toggle(row); } : null},
      columns.map((c, i) => this.cell(row, c, i === 0)));
    return open ? [line, el("tr", {class: "detail-row"}, el("td", {class: "text", colspan: String(columns.length)}, detail(row)))] : [line];
  }
  toggle(row) {
    const focus = this.found().indexOf(row);
    if (this.open.has(row)) this.open.delete(row); else this.open.add(row);
    this.draw();
    const button = this.body.querySelectorAll("tbody tr.opens button.opener")[focus];
    if (button) button.focus({preventScroll: true});
  }
  cell(row, c, first) {
    const value = row[c.key], kind = c.kind || "count";
    const share = c.share && this.sums[c.key] ? Math.max(value || 0, 0) / this.sums[c.key] : null;
    const made = el(first ? "th" : "td", {class: kind === "text" ? "text" : null, scope: first ? "row" : null, title: kind === "text" ? null : exact[kind](value)});
    if (first && this.options.detail) made.append(el("button", {type: "button", class: "opener", "aria-expanded": String(this.open.has(row)), "aria-label": `Details of ${row[c.key]}`, onclick: () => this.toggle(row)}, this.open.has(row) ? "▾" : "▸"));
    if (c.render) made.append(c.render(row, value));
    else if (kind === "text") made.append(...marked(format.text(value), this.state.q));
    else made.append(value == null ? "" : format[kind](value));
    if (share != null) made.append(el("span", {class: "share", style: {"--share": Math.min(share, 1).toFixed(4)}, title: `${exact.share(share)} of all rows`}, format.share(share)));
    if (c.indent) made.style.paddingLeft = `${0.6 + 1.2 * (row[c.indent] || 0)}rem`;
    return made;
  }
  sortBy(key) {
    this.state.down = this.state.sort === key ? !this.state.down : this.columns.find((c) => c.key === key).kind !== "text";
    this.state.sort = key;
    const place = this.visible().findIndex((c) => c.key === key);
    this.draw();
    this.body.querySelectorAll("thead th")[place].querySelector("button").focus({preventScroll: true});
    this.changed(this.state);
  }
  async copy() {
    const columns = this.visible();
    const lines = [columns.map((c) => c.title + (UNITS[c.kind] || "")), ...this.found().map((row) => columns.map((c) => row[c.key] ?? ""))];
    const text = lines.map((line) => line.map((cell) => String(cell).replace(/[\t\r\n]+/g, " ")).join("\t")).join("\n");
    try { await navigator.clipboard.writeText(text); }
    catch { const area = el("textarea"); area.value = text; document.body.append(area); area.select(); document.execCommand("copy"); area.remove(); }
    this.count.textContent = `copied ${lines.length - 1} rows`;
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
