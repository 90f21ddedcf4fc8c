// Memory alive at the chosen time: block by block, or added up by category, module, op or place in the program.

const ROWS_AT_ONCE = 100, COLUMNS = 6;
const headings = {
  block: ["Size", "Share", "Category", "Allocated by", "Module", "Lives"],
  category: ["Size", "Share", "Blocks", "Category"], module: ["Size", "Share", "Blocks", "Module"],
  op: ["Size", "Share", "Blocks", "Allocated by"], place: ["Size", "Share", "Blocks", "Place in the program"],
};
const groupings = {
  category: segment => LABELS[kind[segment]],
  module: segment => moduleOf(segment) || "no module",
  op: segment => opWords(data.segments.op[segment]).pop() ?? originOf(segment),
  place: segment => isOlder(segment) ? "before the recording"
    : framesOf(segment).find(frame => !LIBRARY.test(frame)) ?? "outside the program",
};
const LIBRARY = /^(nn\.Module: |<built-in |(mindtorch_v2|torch)\/)/; // frames outside the program
let alive = [], listed = 0, grouping = "block", wanted = "";

function matches(segment) {
  const words = [LABELS[kind[segment]], ...opWords(data.segments.op[segment]), moduleOf(segment), ...framesOf(segment)];
  if (data.segments.op[segment] < 0) words.push(originOf(segment));
  return words.join("\n").toLowerCase().includes(wanted);
}

function pin(time) {
  pinned = time;
  list();
  draw();
  remember();
}

function list() {
  const time = pinned, all = [];
  for (let i = 0; i < count; i++) if (shown[kind[i]] && begin[i] <= time && time < end[i]) all.push(i);
  all.sort((a, b) => bytes[b] - bytes[a] || begin[a] - begin[b]);
  alive = wanted ? all.filter(matches) : all;
  const sum = total[pointAt(time)], atPeak = time === times[peak];
  const scope = spanAt(time), found = alive.reduce((all, i) => all + bytes[i], 0);
  element("alive-title").textContent =
    `Alive at ${timeText(time)}${atPeak ? " (the peak)" : ""}${scope ? `, in ${scope}` : ""}: `
    + `${numberText(all.length, "block")}, ${sizeText(sum)}`;
  element("alive-title").dataset.ns = time;
  element("found").textContent = wanted ? `${numberText(alive.length, "block")}, ${sizeText(found)}` : "";
  drawParts(pointAt(time), sum);
  const numbers = grouping === "block" ? 2 : 3;
  element("headings").replaceChildren(...headings[grouping].map((text, i) => make("th", text, i < numbers ? "number" : "")));
  element("headings").lastChild.colSpan = COLUMNS + 1 - headings[grouping].length;
  element("alive").replaceChildren();
  element("table").dataset.grouping = grouping;
  listed = 0;
  if (grouping === "block") listMore();
  else listGroups(sum);
}

function drawParts(point, sum) { // the bytes of each category
  const parts = sums.map((all, k) => [k, all[point]]).filter(([k, size]) => shown[k] && size);
  element("parts").replaceChildren(...parts.map(([k, size]) => {
    const part = make("span");
    part.style.flex = `${size} 0 0`;
    part.style.background = `var(--c${k})`;
    part.title = `${LABELS[k]}: ${sizeText(size)}, ${shareText(size, sum)}`;
    return part;
  }));
  parts.sort((a, b) => b[1] - a[1]);
  element("part-names").replaceChildren(...parts.map(([k, size]) => {
    const part = make("span");
    part.append(dot(k), `${LABELS[k]} `, make("b", sizeText(size)), ` ${shareText(size, sum)}`);
    return part;
  }));
}

function opens(row, detail) { // a click, Enter or the space bar shows or hides the details of a row
  row.tabIndex = 0;
  row.setAttribute("aria-expanded", "false");
  let rows = [];
  const toggle = () => {
    if (rows.length) { for (const one of rows) { one.dispatchEvent(new Event("leave")); one.remove(); } rows = []; }
    else { rows = detail(); row.after(...rows); }
    row.setAttribute("aria-expanded", String(rows.length > 0));
  };
  row.addEventListener("leave", () => { if (rows.length) toggle(); });
  row.addEventListener("click", toggle);
  row.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
  });
  return row;
}

function shareCell(size, sum, largest, k) {
  const cell = make("td", shareText(size, sum), "number share");
  cell.style.setProperty("--part", size / (largest || 1));
  cell.style.setProperty("--bar", k < 0 ? "var(--accent)" : `var(--c${k})`);
  return cell;
}

function listMore() {
  const sum = total[pointAt(pinned)] || 1, largest = alive.length ? bytes[alive[0]] : 1;
  const next = alive.slice(listed, listed + ROWS_AT_ONCE);
  element("alive").append(...next.map(segment => blockRow(segment, sum, largest)));
  listed += next.length;
  const rest = alive.slice(listed);
  element("more").hidden = !rest.length;
  element("more").textContent =
    `${rest.length.toLocaleString("en")} more, ${sizeText(rest.reduce((all, i) => all + bytes[i], 0))} in total`;
}

function listGroups(sum) {
  const groups = new Map();
  for (const segment of alive) {
    const name = groupings[grouping](segment);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(segment);
  }
  const sized = [...groups].map(([name, members]) => [name, members, members.reduce((all, i) => all + bytes[i], 0)]);
  sized.sort((a, b) => b[2] - a[2]);
  element("more").hidden = true;
  element("alive").append(...sized.map(([name, members, size]) => {
    const row = make("tr", undefined, "group"), label = make("td"), only = grouping === "category";
    if (only) label.append(dot(kind[members[0]]));
    label.append(name);
    label.colSpan = COLUMNS - 3;
    row.append(make("td", sizeText(size), "number"),
               shareCell(size, sum, sized[0][2], only ? kind[members[0]] : -1),
               make("td", members.length.toLocaleString("en"), "number"), label);
    return opens(row, () => {
      const rows = members.slice(0, ROWS_AT_ONCE).map(segment => blockRow(segment, sum, bytes[members[0]]));
      if (members.length > rows.length) {
        const rest = make("tr", undefined, "stack"), cell = make("td", `${members.length - rows.length} smaller ones`);
        cell.colSpan = COLUMNS;
        rest.append(cell);
        rows.push(rest);
      }
      return rows;
    });
  }));
}

function blockRow(segment, sum, largest) {
  const row = make("tr", undefined, "block");
  const category = make("td", undefined, "kind");
  category.append(dot(kind[segment]), LABELS[kind[segment]]);
  const words = opWords(data.segments.op[segment]), op = make("td", undefined, "op"), inner = words.pop();
  if (words.length) op.append(make("span", words.join(" › ") + " › ", "around"));
  op.append(inner ?? originOf(segment));
  const [first, last] = lives.get(data.segments.block[segment]);
  const since = isOlder(segment) ? "the start" : timeText(first);
  const until = last === Infinity ? "the end" : timeText(last);
  const when = make("td", `${since} – ${until}`, "when");
  if (!isOlder(segment) && last !== Infinity) when.append(make("small", ` ${timeText(last - first)}`));
  row.append(make("td", sizeText(bytes[segment]), "number"), shareCell(bytes[segment], sum, largest, kind[segment]),
             category, op, make("td", moduleOf(segment), "module"), when);
  return opens(row, () => [stackRow(segment)]);
}

function stackRow(segment) {
  const row = make("tr", undefined, "stack"), cell = make("td"), frames = framesOf(segment);
  cell.colSpan = COLUMNS;
  if (frames.length) {
    const lines = make("ol");
    lines.append(...frames.map(frame => make("li", frame)));
    cell.append(lines);
  } else cell.textContent = isOlder(segment) ? "It is older than the recording, so its origin is unknown."
                                             : "No Python stack was recorded for it.";
  row.append(cell);
  return row;
}
