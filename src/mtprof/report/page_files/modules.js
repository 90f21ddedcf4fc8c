"use strict";
// The model as a tree: the cost of each layer, forward and backward.
function modulesPage(state, changed) {
  if (!D.modules.rows.length) return [el("p", {class: "empty"}, D.modules.why || "No module was called during the recording.")];
  for (const row of D.modules.rows) {
    row.self_time = (row.self_forward_ns || 0) + (row.self_backward_ns || 0);
    row.total_time = (row.forward_ns || 0) + (row.backward_ns || 0);
  }
  const whole = D.modules.rows.reduce((sum, row) => sum + row.self_time, 0);
  const columns = [
    {key: "name", title: "Module", kind: "text", indent: "depth"}, {key: "path", title: "Path", kind: "text", hidden: true},
    {key: "calls", title: "Calls", kind: "count"},
    {key: "self_time", title: "Self time", kind: "time", share: true, always: true, help: "forward and backward, without the modules inside; the share is of all modules"},
    {key: "total_time", title: "Total time", kind: "time", share: true, whole, always: true, help: "forward and backward, with the modules inside; the share is of all modules"},
    {key: "forward_ns", title: "Forward", kind: "time"}, {key: "self_forward_ns", title: "Self forward", kind: "time", hidden: true},
    {key: "backward_ns", title: "Backward", kind: "time"}, {key: "self_backward_ns", title: "Self backward", kind: "time", hidden: true},
    {key: "allocated_bytes", title: "Allocated", kind: "size"}, {key: "self_allocated_bytes", title: "Self allocated", kind: "size", hidden: true},
    {key: "flops", title: "FLOPs", kind: "work"}, {key: "parameters", title: "Parameters", kind: "work"},
  ];
  const flat = el("button", {type: "button", "aria-pressed": String(Boolean(state.flat)), onclick: () => changed({...state, flat: state.flat ? "" : "1"}, true)}, "Sort without the tree");
  return [new DataTable(state.flat ? columns.map((c) => ({...c, indent: null})) : columns, D.modules.rows, state, (s) => changed({...state, ...s}),
    {sort: "self_time", ordered: !state.flat, tools: flat, total: "self_time", label: "Modules"}).element];
}
