"use strict";
// The first screen: where the time goes, and what to change.
function rowsOf(part) {  // the page that shows a part of a step
  const words = {data: "#/timeline?q=enumerate(DataLoader)", backward: "#/operators?q=backward", optimizer: "#/operators?q=Optimizer."};
  return words[part] || (part === "forward" ? (D.modules.rows.length ? "#/modules" : "#/operators") : "#/timeline");
}
function findingCard(finding, number) {
  const href = finding.page && finding.page !== "overview" ? `#/${finding.page}${finding.query ? "?q=" + encodeURIComponent(finding.query) : ""}` : null;
  const place = finding.place && `${finding.place.file}${finding.place.line ? ":" + finding.place.line : ""} (${finding.place.function})`;
  return el("li", {class: "finding"}, el("h3", {}, href ? el("a", {href}, finding.title) : finding.title),
    place ? el("p", {class: "place"}, place) : null, el("p", {}, finding.change.split("`").map((part, i) => i % 2 ? el("code", {}, part) : part)), el("p", {class: "dim"}, `Saves ${finding.saving}.`),
    el("details", {}, el("summary", {}, "Figures"), el("dl", {class: "figures"}, finding.figures.flatMap((f) => [el("dt", {}, f.name), el("dd", {title: typeof f.value === "number" ? String(f.value) : null}, f.text)]))));
}
function deviceBars(o) {
  return o.device_idle.flatMap((d) => {
    const parts = [["computing", "device", d.computation_ns], ["communication", "communication", d.communication_ns], ["copies", "data", d.memory_ns], ["idle", "idle", d.idle_ns]];
    return [el("p", {class: "dim"}, `${d.device}, over ${format.time(d.total_ns)}, from its first to its last work:`), partsBar(parts, d.total_ns, d.device),
      legendOf(parts.map(([name, key, time]) => [`${name} ${format.time(time)}, ${format.share(time / d.total_ns)}`, key, "#/timeline"]))];
  });
}
function stepsChart(o) {
  // Slow first steps would leave no room for the others; a bar that is cut off says so.
  const walls = o.steps.map((s) => s.wall).sort((a, b) => a - b), median = walls[walls.length >> 1], top = Math.min(walls[walls.length - 1], 4 * median);
  const bars = o.steps.map((s, i) => el("a", {href: `#/timeline?from=${Math.round(o.starts[i] - o.begin)}&span=${Math.round(s.wall)}`, class: s.wall > top ? "cut" : null,
    title: `step ${s.step}: ${format.time(s.wall)}${s.wall > top ? " (taller than the chart)" : ""}\n` + o.parts.map((p) => `${p} ${format.time(s[p])}`).join("\n"), "aria-label": `step ${s.step}, ${format.time(s.wall)}`},
    o.parts.map((p) => el("span", {style: {background: `var(${COLOURS[p]})`, height: `${100 * s[p] / Math.max(top, s.wall)}%`}}))));
  return [el("h2", {}, "Steps"), el("p", {class: "dim"}, `${o.count.toLocaleString("en")} steps; the median one${o.warmup ? " after the warm-up" : ""} takes ${format.time(o.typical.wall)}, the fastest ${format.time(walls[0])}, the slowest ${format.time(walls[walls.length - 1])}.` +
    (o.count > o.steps.length ? ` The first ${o.steps.length.toLocaleString("en")} are drawn.` : "") + " Click a step to see it in the timeline."),
    el("div", {class: "chart"}, el("div", {class: "axis", "aria-hidden": "true"}, el("span", {}, format.time(top)), el("span", {}, format.time(top / 2)), el("span", {}, "0")), el("div", {class: "spark"}, bars))];
}
function overviewPage() {
  const o = D.overview, made = [el("p", {class: "headline"}, o.headline)];
  const bar = (step, name) => {
    const parts = o.parts.map((p) => [p, p, step[p]]);
    return [partsBar(parts, step.wall, name), legendOf(parts.map(([p, , time]) => [`${p} ${format.time(time)}, ${format.share(time / step.wall)}`, p, rowsOf(p)]))];
  };
  if (o.average && o.average.wall) {
    made.push(el("p", {class: "dim"}, o.known ? `An average step of ${o.count.toLocaleString("en")}, ${format.time(o.average.wall)} (by ${o.source}${o.warmup === 1 ? "; without the first, which is warm-up" : o.warmup ? `; without the first ${o.warmup}, which are warm-up` : ""}):`
      : `The whole recording, ${format.time(o.average.wall)} (no steps were found):`), ...bar(o.average, "An average step"));
    if (o.differ) made.push(el("p", {}, o.differ), ...bar(o.typical, "The median step"));
  }
  made.push(...deviceBars(o));
  const findings = o.findings.slice(0, 5), looked = o.checks.filter((c) => c.verdict !== "cannot tell").length;
  if (findings.length) made.push(el("h2", {}, "What to change"), el("ol", {class: "findings"}, findings.map(findingCard)));
  else made.push(el("p", {class: "healthy"}, looked ? `Nothing to change: ${looked} of ${o.checks.length} checks had evidence, and found nothing wrong.` : "The recording has no evidence for any check."));
  if (o.findings.length > 5) made.push(el("details", {}, el("summary", {}, `${o.findings.length - 5} more`), el("ol", {class: "findings", start: "6"}, o.findings.slice(5).map(findingCard))));
  if (o.known && o.steps.length > 1) made.push(...stepsChart(o));
  made.push(el("details", {class: "checks", open: !findings.length}, el("summary", {}, "Checks"), el("div", {class: "scroll whole"}, el("table", {"aria-label": "Checks"},
    el("thead", {}, el("tr", {}, ["Check", "Verdict", "Because"].map((t) => el("th", {class: "text", scope: "col"}, t)))),
    el("tbody", {}, o.checks.map((c) => el("tr", {}, el("th", {class: "text", scope: "row"}, c.kind), [c.verdict, c.why].map((t) => el("td", {class: "text"}, t)))))))));
  return made;
}
