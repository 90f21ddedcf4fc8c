"use strict";
// The model as a tree.
function modulesPage(state, changed) {
  if (D.modules.why) return [el("p", {}, D.modules.why)];
  const columns = [
    {key: "name", title: "Module", kind: "text", indent: "depth"}, {key: "path", title: "Path", kind: "text", hidden: true},
    {key: "calls", title: "Calls", kind: "count"},
    {key: "forward_ns", title: "Forward", kind: "time"}, {key: "self_forward_ns", title: "Self forward", kind: "time", share: true},
    {key: "backward_ns", title: "Backward", kind: "time"}, {key: "self_backward_ns", title: "Self backward", kind: "time", share: true},
    {key: "allocated_bytes", title: "Allocated", kind: "size"}, {key: "self_allocated_bytes", title: "Self allocated", kind: "size", hidden: true},
    {key: "flops", title: "FLOPs", kind: "work"}, {key: "parameters", title: "Parameters", kind: "work"},
  ];
  const flat = el("button", {type: "button", "aria-pressed": String(Boolean(state.flat)), onclick: () => changed({...state, flat: state.flat ? "" : "1"}, true)}, "Sort without the tree");
  return [new DataTable(columns, D.modules.rows, state, (s) => changed({...state, ...s}), {sort: "self_forward_ns", ordered: !state.flat, tools: flat}).element];
}
