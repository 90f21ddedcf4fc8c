// Data: stretches of memory, the bytes per category at each change, and their texts.

const KINDS = data.categories.length;
const LABELS = data.categories.map(name => name[0] + name.slice(1).toLowerCase().replaceAll("_", " "));

const count = data.segments.begin.length;
const begin = Float64Array.from(data.segments.begin), bytes = Float64Array.from(data.segments.bytes);
const kind = Uint8Array.from(data.segments.category);
const duration = Math.max(data.duration, begin.reduce((a, b) => Math.max(a, b), 0), 1);
const end = Float64Array.from(data.segments.end, time => time < 0 ? Infinity : time);

// A block is several stretches if its category changes; it lives from the beginning of the first to the end of the last.
const lives = new Map();
data.segments.block.forEach((block, i) => {
  const known = lives.get(block);
  if (known) { known[0] = Math.min(known[0], begin[i]); known[1] = Math.max(known[1], end[i]); }
  else lives.set(block, [begin[i], end[i], bytes[i]]);
});

function addUp() {
  const moments = new Float64Array(2 * count);
  moments.set(begin);
  moments.set(end, count);
  const order = Array.from(moments.keys()).filter(i => moments[i] !== Infinity).sort((a, b) => moments[a] - moments[b]);
  const times = [0], first = [0];
  order.forEach((change, i) => {
    if (moments[change] !== times[times.length - 1]) { times.push(moments[change]); first.push(i); }
  });
  first.push(order.length);
  const sums = Array.from({length: KINDS}, () => new Float64Array(times.length));
  const now = new Float64Array(KINDS);
  times.forEach((_, point) => {
    for (let i = first[point]; i < first[point + 1]; i++) {
      const change = order[i], segment = change % count;
      now[kind[segment]] += change < count ? bytes[segment] : -bytes[segment];
    }
    for (let k = 0; k < KINDS; k++) sums[k][point] = now[k];
  });
  return [Float64Array.from(times), sums];
}
const [times, sums] = addUp();

const shown = new Array(KINDS).fill(true);
const total = new Float64Array(times.length);
let peak = 0;
function sumShown() {
  total.fill(0);
  sums.forEach((sum, k) => { if (shown[k]) for (let i = 0; i < sum.length; i++) total[i] += sum[i]; });
  peak = total.reduce((best, value, i) => value > total[best] ? i : best, 0);
}

function pointAt(time) { // the last change at or before a time
  let low = 0, high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle; else high = middle;
  }
  return low;
}

function spanAt(time) { // the name of the innermost scope around a time
  let found = null;
  for (const span of data.spans)
    if (span[0] <= time && time < span[1] && (!found || span[3] >= found[3])) found = span;
  return found && data.names[found[2]];
}

// -- words ------------------------------------------------------------------------------------------------------------

const digits = value => value < 10 ? 2 : value < 100 ? 1 : 0;
function sizeText(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) { size /= 1024; unit++; }
  return `${unit ? size.toFixed(digits(size)) : size} ${units[unit]}`;
}
function timeText(ns, step) {
  if (!ns) return "0";
  const [unit, name] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const decimals = step ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9)))
                        : unit === 1 ? 0 : digits(ns / unit) + 1;
  return `${(ns / unit).toFixed(decimals)} ${name}`;
}
const numberText = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const shareText = (part, whole) => `${(100 * part / (whole || 1)).toFixed(1)} %`;
function make(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}
function dot(k) {
  const made = make("span", undefined, "dot");
  made.style.background = `var(--c${k})`;
  return made;
}
function opWords(path) {
  const words = [];
  for (; path >= 0; path = data.paths[path][0]) words.unshift(data.names[data.paths[path][1]]);
  return words;
}
const isOlder = segment => data.segments.older[segment];
const moduleOf = segment => data.segments.module[segment] < 0 ? "" : data.names[data.segments.module[segment]];
const framesOf = segment => data.segments.stack[segment] < 0 ? []
  : data.stacks[data.segments.stack[segment]].map(frame => data.names[frame]);
const originOf = segment => isOlder(segment) ? "before the recording" : "outside of ops";
