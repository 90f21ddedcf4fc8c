"use strict";
// The first screen: where the time goes, and what to change.
function stackedBar(step, parts) {
  return el("div", {class: "stack", role: "img", "aria-label": parts.map((p) => `${p} ${format.share(step[p] / step.wall)}`).join(", ")},
    parts.filter((p) => step[p] > 0).map((p) => el("span", {style: {background: `var(${COLOURS[p]})`, width: `${100 * step[p] / step.wall}%`},
      title: `${p}: ${exact.time(step[p])}`}, step[p] / step.wall > 0.06 ? `${p} ${format.time(step[p])}` : "")));
}
function findingCard(finding) {
  const link = finding.page && finding.page !== "overview"
    ? el("a", {href: `#/${finding.page}${finding.query ? "?q=" + encodeURIComponent(finding.query) : ""}`}, "Show the evidence") : null;
  return el("article", {class: "finding"}, el("h3", {}, finding.title),
    el("dl", {class: "figures"}, finding.figures.flatMap((f) => [el("dt", {}, f.name), el("dd", {}, f.text)])),
    finding.place ? el("p", {class: "place"}, `${finding.place.file}:${finding.place.line} (${finding.place.function})`) : null,
    el("p", {}, finding.change), el("p", {class: "dim"}, `Saves ${finding.saving}.`), link);
}
function overviewPage() {
  const o = D.overview, made = [el("p", {class: "headline"}, o.headline)];
  if (o.typical && o.typical.wall) {
    made.push(el("p", {class: "dim"}, o.known ? `A median step, of ${o.count} (steps from ${o.source}${o.warmup ? `; the first ${o.warmup} warmed up` : ""}):`
      : "The whole recording (no steps were found):"), stackedBar(o.typical, o.parts),
      legendOf(o.parts.map((p) => [`${p} ${format.time(o.typical[p])}, ${format.share(o.typical[p] / o.typical.wall)}`, p])));
  }
  for (const d of o.device_idle) made.push(el("p", {}, `${d.device}: computing ${format.time(d.computation_ns)}, memory ${format.time(d.memory_ns)}, ` +
    `communication ${format.time(d.communication_ns)}, idle ${format.time(d.idle_ns)} (${format.share(d.idle_ns / d.total_ns)}).`));
  const findings = o.findings.slice(0, 5);
  made.push(el("h2", {}, findings.length ? "What to change" : "Nothing stands out"));
  made.push(el("div", {class: "findings"}, findings.length ? findings.map(findingCard)
    : el("article", {class: "finding healthy"}, el("p", {}, "No check found something worth a change. What was looked at:"))));
  if (o.findings.length > 5) made.push(el("details", {}, el("summary", {}, `${o.findings.length - 5} more`), el("div", {class: "findings"}, o.findings.slice(5).map(findingCard))));
  made.push(el("details", {open: !findings.length}, el("summary", {}, "All checks"), el("div", {class: "scroll"}, el("table", {},
    el("thead", {}, el("tr", {}, ["Check", "Verdict", "Why"].map((t) => el("th", {class: "text"}, t)))),
    el("tbody", {}, o.checks.map((c) => el("tr", {}, [c.kind, c.verdict, c.why].map((t) => el("td", {class: "text"}, t)))))))));
  if (o.known && o.steps.length > 1) {
    // Slow first steps would leave no room for the others; what is cut off says so.
    const walls = o.steps.map((s) => s.wall).sort((a, b) => a - b), top = Math.min(walls[walls.length - 1], 4 * walls[walls.length >> 1]);
    made.push(el("h2", {}, "Steps"), el("div", {class: "spark"}, o.steps.map((s, i) => el("a", {href: `#/timeline?from=${Math.round(o.starts[i] - o.begin)}&span=${Math.round(s.wall)}`,
      title: `step ${s.step}: ${format.time(s.wall)}${s.wall > top ? " (taller than the chart)" : ""}`, "aria-label": `step ${s.step}, ${format.time(s.wall)}`},
      o.parts.map((p) => el("span", {style: {background: `var(${COLOURS[p]})`, height: `${100 * s[p] / Math.max(top, s.wall)}%`}}))))));
  }
  return made;
}
