"use strict";
// What holds the peak, and memory over time.
function memoryChartOf(device, state, changed) {
  const host = el("div", {class: "memory"}), root = host.attachShadow({mode: "open"}), chart = D.memory.charts[device];
  root.append(document.getElementById("memory-chart").content.cloneNode(true));
  host.ready = unpackAll(chart.segments).then((columns) => {
    const segments = Object.fromEntries(Object.entries(columns).map(([key, column]) => [key, Array.from(column)]));
    memoryChart(root, host, {...chart, segments}, state, changed);
  });
  return host;
}
function peakTables(device, state, changed) {
  const kinds = {category: device.by_category, place: device.by_place, module: device.by_module, op: device.by_op};
  // A grouping that the recording knows nothing about has one row for everything.
  const names = Object.keys(kinds).filter((name) => kinds[name].length > 1 || (kinds[name].length && (name === "op" || !kinds[name][0].name.startsWith("("))));
  for (const block of device.largest) if (block.step < 0) block.step = null;
  const by = names.includes(state.by) ? state.by : names[0];
  return [el("div", {class: "cards"}, [["Peak", format.size(device.peak_bytes)], ["At", format.time(device.time_ns - D.overview.begin)],
    ["Step", device.step >= 0 ? String(device.step) : "–"], ["Between steps", format.size(device.low_bytes)],
    ["Before the recording", format.size(device.before_bytes)]].map(([name, value]) => el("div", {class: "card"}, el("b", {}, value), name))),
    el("h2", {}, "What holds the peak"), el("div", {class: "tools"}, names.map((name) => el("button", {type: "button", "aria-pressed": String(name === by),
      onclick: () => changed({...state, by: name}, true)}, "by " + name))),
    by ? new DataTable([{key: "name", title: by[0].toUpperCase() + by.slice(1), kind: "text"}, {key: "bytes", title: "Bytes at the peak", kind: "size", share: true, always: true},
      {key: "blocks", title: "Blocks", kind: "count"}], kinds[by], state, (s) => changed({...state, ...s, by}), {sort: "bytes", label: "What holds the peak"}).element : null,
    el("h2", {}, "Largest blocks at the peak"), new DataTable([{key: "op", title: "Made by", kind: "text"}, {key: "module", title: "Module", kind: "text"},
      {key: "place", title: "Place", kind: "text"}, {key: "bytes", title: "Bytes", kind: "size", share: true, whole: device.peak_bytes, always: true}, {key: "step", title: "Step", kind: "count"}],
      device.largest, {}, null, {sort: "bytes", label: "Largest blocks at the peak"}).element];
}
function memoryPage(state, changed) {
  const m = D.memory, made = [];
  if (!m.peaks.length) return [el("p", {class: "empty"}, m.why || "No memory was allocated during the recording.")];
  const device = m.peaks.find((p) => p.device === state.device) || m.peaks[0];
  if (m.peaks.length > 1) made.push(el("div", {class: "tools"}, m.peaks.map((p) => el("button", {type: "button", "aria-pressed": String(p === device),
    onclick: () => changed({device: p.device}, true)}, `${p.device}, ${format.size(p.peak_bytes)}`))));
  if (m.charts && m.charts[device.device]) return [...made, memoryChartOf(device.device, state, (s) => changed({...s, device: state.device}))];
  return [...made, ...peakTables(device, state, changed), m.why ? el("p", {class: "empty"}, m.why) : null];
}
