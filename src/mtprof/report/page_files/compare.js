"use strict";
// Two recordings compared.
function comparePage(state, changed) {
  const c = D.compare;
  if (!c) return [el("p", {class: "empty"}, "This report has one trace. `mtprof report before.mtp after.mtp` compares two.")];
  const what = ["operators", "modules", "parts"].includes(state.what) ? state.what : "operators";
  const columns = [
    {key: "name", title: "Name", kind: "text"}, {key: "change", title: "Verdict", kind: "text"},
    {key: "before_ns", title: "Before", kind: "time"}, {key: "after_ns", title: "After", kind: "time"},
    {key: "difference_ns", title: "Difference", kind: "change", always: true}, {key: "ratio", title: "Relative", kind: "ratio"},
    {key: "low_ns", title: "95 % from", kind: "change"}, {key: "high_ns", title: "95 % to", kind: "change"},
    {key: "before_calls", title: "Calls before", kind: "count"}, {key: "after_calls", title: "Calls after", kind: "count"}, {key: "size", title: "Size", kind: "time", hidden: true},
  ];
  for (const row of c[what]) row.size = Math.abs(row.difference_ns || 0);
  return [el("p", {class: "headline"}, c.summary), el("p", {class: "dim"}, `Before: ${c.names[0]}, ${c.before_steps} steps. After: ${c.names[1]}, ${c.after_steps} steps. ` +
    "Times are per step. A difference counts as a change if its 95 % interval excludes zero and it is above 1 %."),
    c.peak_bytes ? el("p", {}, `Memory peak: ${format.size(c.peak_bytes[0])} before, ${format.size(c.peak_bytes[1])} after.`) : null,
    el("div", {class: "tools"}, ["operators", "modules", "parts"].filter((k) => c[k].length).map((k) => el("button", {type: "button", "aria-pressed": String(k === what),
      onclick: () => changed({...state, what: k}, true)}, k))),
    new DataTable(columns, c[what], state, (s) => changed({...state, ...s, what}), {sort: "size", label: `Differences of ${what}`}).element];
}
