"use strict";
// Ops by name, shape, place or module.
const GROUPS = {name: "by name", shape: "by shape", place: "by place in the code", module: "by module"};
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
    {key: "self", title: "Self time", kind: "time", share: true, always: true, help: "without what ran inside it"},
    {key: "total", title: "Total time", kind: "time"}, {key: "calls", title: "Calls", kind: "count"},
    {key: "average", title: "Average", kind: "time"},
    {key: "self_device", title: "Self device time", kind: "time", share: true}, {key: "device_time", title: "Device time", kind: "time"},
    {key: "self_bytes", title: "Self memory", kind: "size"}, {key: "bytes", title: "Memory", kind: "size", hidden: true},
    {key: "flops", title: "FLOPs", kind: "work"}, {key: "rate", title: "FLOP/s", kind: "work"},
    {key: "kind", title: "Kind", kind: "text", hidden: true}, {key: "device", title: "Device", kind: "text", hidden: true},
  ];
  for (const row of rows) {
    row.average = row.calls ? (row.total || 0) / row.calls : 0;
    row.rate = row.flops && row.total ? row.flops / (row.total / 1e9) : 0;
  }
  const table = new DataTable(columns, rows, state, (s) => changed({...state, ...s, group}), {sort: "self", total: "self", tools: choose});
  return [table.element, left ? el("p", {class: "dim"}, `${left.toLocaleString("en")} rows with the least self time are left out; shares are of the rows shown.`) : null];
}
