"use strict";
// All ranks of a job: which is slow, when, and which waited for which.
function rankMap(map, state, changed) {
  const measure = map.values[state.measure] ? state.measure : "behind";
  const rows = map.values[measure], flat = rows.flat().filter((v) => v > 0).sort((a, b) => a - b);
  const top = flat.length ? flat[Math.floor(0.95 * (flat.length - 1))] : 1, low = flat.length ? flat[0] : 0;
  const wide = Math.max(3, Math.min(26, Math.floor(1100 / Math.max(map.steps.length, 1))));
  const high = Math.max(2, Math.min(20, Math.floor(480 / Math.max(rows.length, 1))));
  const left = 64, bottom = 24, ratio = devicePixelRatio || 1;
  const width = left + wide * map.steps.length, height = high * rows.length + bottom;
  const canvas = el("canvas", {role: "img", "aria-label": `${map.measures[measure]} by rank and step`, width: width * ratio, height: height * ratio,
    style: {width: `${width}px`, height: `${height}px`, "max-width": "none"}});
  const pen = canvas.getContext("2d"), ink = colour("--dim"), fill = colour("communication"), empty = colour("--panel");
  pen.scale(ratio, ratio);
  pen.translate(0, 4);
  pen.font = "11px system-ui, sans-serif";
  rows.forEach((row, r) => row.forEach((value, s) => {
    pen.globalAlpha = 1; pen.fillStyle = empty;
    pen.fillRect(left + s * wide, r * high, wide - (wide > 6), high - (high > 6));
    pen.globalAlpha = value > 0 ? 0.08 + 0.92 * Math.min(1, Math.max(0, (value - low) / Math.max(top - low, 1))) : 0; pen.fillStyle = fill;
    pen.fillRect(left + s * wide, r * high, wide - (wide > 6), high - (high > 6));
  }));
  pen.globalAlpha = 1; pen.fillStyle = ink; pen.textAlign = "right"; pen.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(14 / high)), along = Math.max(1, Math.ceil(40 / wide));
  map.ranks.forEach((rank, r) => { if (r % every === 0) pen.fillText(`rank ${rank}`, left - 6, r * high + high / 2); });
  pen.textAlign = "center";
  map.steps.forEach((step, s) => { if (s % along === 0) pen.fillText(String(step), left + s * wide + wide / 2, rows.length * high + 11); });
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect(), s = Math.floor((event.clientX - box.left - left) / wide), r = Math.floor((event.clientY - box.top - 4) / high);
    if (!rows[r] || s < 0 || s >= map.steps.length) { tip.hide(); return; }
    const more = map.ranks_joined > 1 || map.steps_joined > 1 ? ` (longest of ${map.ranks_joined} ranks × ${map.steps_joined} steps)` : "";
    tip.show(`rank ${map.ranks[r]}, step ${map.steps[s]}: ${map.measures[measure]} ${format.time(rows[r][s])}${more}`, event.clientX, event.clientY);
  });
  canvas.addEventListener("mouseleave", () => tip.hide());
  const choose = el("select", {"aria-label": "What the map shows", onchange: (event) => changed({...state, measure: event.target.value}, true)},
    Object.entries(map.measures).map(([key, title]) => el("option", {value: key, selected: key === measure}, title)));
  return [el("div", {class: "tools"}, choose, el("span", {class: "dim"}, `by rank (down) and step (across), from ${format.time(low)}, pale, to ${format.time(top)} and more`)),
    el("div", {class: "scroll"}, canvas)];
}
function ranksPage(state, changed) {
  const r = D.ranks, keep = (s) => changed({...state, ...s});
  const card = (title, value) => el("div", {class: "card"}, el("b", {}, value), title);
  const time = (key, title, more) => ({key: `${key}_ns`, title, kind: "time", ...more});
  const rankColumns = [{key: "rank", title: "Rank", always: true}, {key: "steps", title: "Steps"}, time("duration", "Total"), time("compute", "Compute", {share: true}),
    time("input", "Input"), time("communication", "Communication"), time("exposed", "Exposed", {help: "communication without compute at the same time"}), time("waited", "Waited"),
    time("waited_for", "Others waited", {share: true, help: "total wait of the others where this rank came last"}), {key: "last", title: "Came last"},
    {key: "why", title: "Why", kind: "text"}, time("why", "By", {help: "how much longer than the median rank"}), time("clock_error", "Clock ±", {hidden: true})];
  const waitColumns = [{key: "operation", title: "Collective", kind: "text"}, {key: "group", title: "Group", kind: "text"}, {key: "number", title: "Number", always: true},
    {key: "ranks", title: "Ranks"}, {key: "last_rank", title: "Last rank", always: true}, {key: "why", title: "Why", kind: "text"}, time("spread", "Spread"),
    time("waited", "Waited", {share: true}), time("transfer", "Transfer")];
  const moduleColumns = [{key: "module", title: "Module", kind: "text"}, time("mean", "Mean"), time("slowest", "Slowest"), {key: "slowest_rank", title: "Rank", always: true},
    {key: "imbalance", title: "Slowest over mean"}];
  return [el("p", {class: "headline"}, r.headline),
    r.problems.length ? el("article", {class: "finding", style: {"margin-bottom": "1rem"}}, r.problems.map((text) => el("p", {}, text))) : null,
    el("div", {class: "cards"}, card("ranks", r.count.toLocaleString("en")), card("events", r.events.toLocaleString("en")),
      card("compute of the busiest rank over the mean", r.imbalance.toFixed(2)), card("of communication is hidden behind compute", format.share(r.overlap)),
      card("less, if the slowest rank of each step were as fast as the median", format.time(r.gain))),
    el("h2", {}, "Ranks and steps"), ...rankMap(r.map, state, changed),
    el("h2", {}, "Ranks"), new DataTable(rankColumns, r.ranks, state, keep, {sort: "waited_for_ns"}).element,
    el("h2", {}, "Collectives with the most waiting"), new DataTable(waitColumns, r.waits, {}, null, {sort: "waited_ns"}).element,
    r.modules.length ? el("h2", {}, "Imbalance by module") : null,
    r.modules.length ? new DataTable(moduleColumns, r.modules, {}, null, {sort: "slowest_ns"}).element : null];
}
