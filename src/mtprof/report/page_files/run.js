"use strict";
// How the recording was made, what it cost, and what is missing.
function runPage() {
  const r = D.run, f = r.facts;
  const rows = [["File", f.file], ["Began", f.began], ["Lasted", format.time(f.lasted_ns)], ["Events", format.count(f.events)],
    ["Dropped events", f.dropped ? format.count(f.dropped) + " (beyond max_events)" : "none"], ["Threads and streams", f.threads], ["Processes", f.processes],
    ["Steps", f.steps], ...Object.entries(r.program).map(([key, value]) => [key[0].toUpperCase() + key.slice(1), value]), ["The profiler's own cost", f.overhead_ns ? `${format.time(f.overhead_ns)}, ${format.share(f.overhead_ns / f.lasted_ns)} of the recording${f.processes > 1 ? "; of the main process alone; the cost in others, such as workers of a loader, is not measured" : ""}` : "not known"],
    ...Object.entries(r.flags).map(([flag, on]) => [flag, on == null ? "not stated" : on ? "yes" : "no"]),
    ...r.clocks.map((c) => [`Clock of ${c.device}`, `off by at most ${digits(c.error_us)} µs (${c.comparisons} comparisons)`])];
  const table = (lines) => el("div", {class: "scroll whole"}, el("table", {class: "facts"}, el("tbody", {}, lines.map(([name, value]) => el("tr", {},
    el("th", {class: "text", scope: "row"}, name), el("td", {class: "text"}, value))))));
  return [el("h2", {}, "Recording"), table(rows), el("h2", {}, "Invariants"),
    r.ailments.length ? table(r.ailments.map((a) => [a.kind, a.text])) : el("p", {}, "The trace keeps all its invariants."),
    el("h2", {}, "Metadata"), table(Object.entries(r.metadata).map(([key, value]) => [key, String(value)]))];
}
