"use strict";
// Ops by name, shape, place or module; a row opens to its shapes, places and modules.
const GROUPS = {name: "by name", shape: "by shape", place: "by place in the code", module: "by module"};
const INSIDE = {shape: ["shapes", "Input shapes"], place: ["place", "Called from"], module: ["module", "In module"]};
function operatorDetail(row) {
  const made = [el("p", {}, el("a", {href: `#/timeline?q=${encodeURIComponent(row.name)}`}, "In the timeline"), " · ",
    el("a", {href: `#/flame?q=${encodeURIComponent(row.name)}`}, "In the flame graph"), row.kind ? ` · ${row.kind} on ${row.device || "cpu"}` : "")];
  for (const [group, [key, title]] of Object.entries(INSIDE)) {
    const all = D.operators.groupings[group];
    if (!all) continue;
    const rows = all.rows.filter((r) => r.name === row.name && r.kind === row.kind && r[key]).sort((a, b) => (b.self || 0) - (a.self || 0));
    if (!rows.length) continue;
    const whole = rows.reduce((sum, r) => sum + (r.self || 0), 0) || 1;
    made.push(el("table", {class: "inner", "aria-label": title}, el("thead", {}, el("tr", {}, el("th", {class: "text", scope: "col"}, title), ["Self time", "Share", "Calls"].map((t) => el("th", {scope: "col"}, t)))),
      el("tbody", {}, rows.slice(0, 8).map((r) => el("tr", {}, el("th", {class: "text", scope: "row"}, r[key]), el("td", {title: exact.time(r.self || 0)}, format.time(r.self || 0)), el("td", {}, format.share((r.self || 0) / whole)), el("td", {}, format.count(r.calls)))))),
      rows.length > 8 ? el("p", {}, el("a", {href: `#/operators?group=${group}&q=${encodeURIComponent(row.name)}`}, `All ${rows.length}`)) : "");
  }
  return made;
}
function operatorsPage(state, changed) {
  const names = Object.keys(D.operators.groupings);
  const group = names.includes(state.group) ? state.group : "name";
  const {rows, left_out: left} = D.operators.groupings[group];
  const choose = el("select", {"aria-label": "Group", onchange: () => changed({...state, group: choose.value}, true)},
    names.map((name) => el("option", {value: name, selected: name === group}, GROUPS[name])));
  const columns = [
    {key: "name", title: "Name", kind: "text"},
    ...(group === "shape" ? [{key: "shapes", title: "Input shapes", kind: "text"}] : []),
    ...(group === "place" ? [{key: "place", title: "Place", kind: "text"}] : []),
    ...(group === "module" ? [{key: "module", title: "Module", kind: "text"}] : []),
    {key: "self", title: "Self time", kind: "time", share: true, always: true, help: "without the ops inside it; the share is of all rows"},
    {key: "total", title: "Total time", kind: "time", help: "with the ops inside it"}, {key: "calls", title: "Calls", kind: "count"},
    {key: "average", title: "Average", kind: "time", help: "total time per call"},
    {key: "self_device", title: "Self device time", kind: "time", share: true}, {key: "device_time", title: "Device time", kind: "time"},
    {key: "self_bytes", title: "Self memory", kind: "size", help: "allocated and not released inside; negative: released"}, {key: "bytes", title: "Memory", kind: "size", hidden: true},
    {key: "flops", title: "FLOPs", kind: "work"}, {key: "rate", title: "FLOP/s", kind: "work"},
    {key: "kind", title: "Kind", kind: "text", hidden: true}, {key: "device", title: "Device", kind: "text", hidden: true},
  ];
  for (const row of rows) {
    row.average = row.calls ? (row.total || 0) / row.calls : 0;
    row.rate = row.flops && row.total ? row.flops / (row.total / 1e9) : 0;
  }
  const table = new DataTable(columns, rows, state, (s) => changed({...state, ...s, group: group === "name" ? "" : group}), {sort: "self", total: "self", tools: choose, label: `Operators ${GROUPS[group]}`, detail: group === "name" ? operatorDetail : null});
  return [table.element, left ? el("p", {class: "dim"}, `${left.toLocaleString("en")} rows with the least self time are left out; shares are of the rows shown.`) : null];
}
