"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = id => document.getElementById(id);
  const canvas = element("canvas"), tip = element("tip");
  const KINDS = data.categories.length, ROWS_AT_ONCE = 100;
  const LABELS = data.categories.map(name => name[0] + name.slice(1).toLowerCase().replaceAll("_", " "));

  // -- data: stretches of memory, and from them the bytes per category at each change ------------------------------

  const count = data.segments.begin.length;
  const begin = Float64Array.from(data.segments.begin), bytes = Float64Array.from(data.segments.bytes);
  const kind = Uint8Array.from(data.segments.category);
  const duration = Math.max(data.duration, begin.reduce((a, b) => Math.max(a, b), 0), 1);
  const end = Float64Array.from(data.segments.end, time => time < 0 ? Infinity : time);

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

  // -- text ----------------------------------------------------------------------------------------------------------

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

  // -- chart ---------------------------------------------------------------------------------------------------------

  const LEFT = 74, RIGHT = 16, TOP = 30, LANE = 15;
  let from = 0, to = duration, pinned = 0, hovered = null, dragged = null;
  const lanes = Math.min(3, 1 + data.spans.reduce((most, span) => Math.max(most, span[3]), -1));
  const below = () => 26 + lanes * LANE;
  const plotWidth = () => canvas.clientWidth - LEFT - RIGHT;
  const plotHeight = () => canvas.clientHeight - TOP - below();
  const xOf = time => LEFT + (time - from) / (to - from) * plotWidth();
  const timeOf = x => Math.min(to, Math.max(from, from + (x - LEFT) / plotWidth() * (to - from)));

  function ticks(low, high, wanted, bases) {
    const rough = (high - low) / wanted;
    const step = bases(rough);
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(value);
    return [found, step];
  }
  function roundStep(rough) {
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map(n => n * power).find(step => step >= rough);
  }
  function byteStep(rough) {
    const power = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(rough, 1)) / 10));
    return [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].map(n => n * power).find(step => step >= rough);
  }

  function draw() {
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const style = getComputedStyle(document.documentElement);
    const color = name => style.getPropertyValue(`--${name}`);
    const paint = canvas.getContext("2d");
    paint.scale(scale, scale);
    paint.font = "11.5px system-ui, sans-serif";
    const high = plotHeight(), wide = plotWidth(), base = TOP + high;
    const top = Math.max(total[peak] * 1.06, 1);
    const yOf = size => base - size / top * high;

    paint.textBaseline = "middle";
    for (const value of ticks(0, top, high / 45, byteStep)[0]) {
      const y = Math.round(yOf(value)) + .5;
      paint.strokeStyle = color("grid");
      paint.beginPath(); paint.moveTo(LEFT, y); paint.lineTo(LEFT + wide, y); paint.stroke();
      paint.fillStyle = color("soft");
      paint.textAlign = "right";
      paint.fillText(sizeText(value), LEFT - 8, y);
    }

    // One column per device pixel: the highest moment in it, so that no peak gets lost, however many there are.
    const colors = sums.map((_, k) => color(`c${k}`));
    const columns = Math.round(wide * scale), one = 1 / scale;
    let point = pointAt(from);
    for (let column = 0; column < columns; column++) {
      const until = from + (column + 1) / columns * (to - from);
      let best = point;
      while (point + 1 < times.length && times[point + 1] < until) {
        point++;
        if (total[point] > total[best]) best = point;
      }
      let y = base;
      for (let k = 0; k < KINDS; k++) {
        if (!shown[k] || !sums[k][best]) continue;
        const part = sums[k][best] / top * high;
        paint.fillStyle = colors[k];
        paint.fillRect(LEFT + column * one, y - part, one + .02, part + .02);
        y -= part;
      }
    }

    paint.strokeStyle = color("line");
    paint.beginPath(); paint.moveTo(LEFT, base + .5); paint.lineTo(LEFT + wide, base + .5); paint.stroke();
    paint.fillStyle = color("soft");
    paint.textAlign = "center";
    const [marks, step] = ticks(from, to, wide / 110, roundStep);
    for (const value of marks) paint.fillText(timeText(value, step), xOf(value), base + 13);
    drawSpans(paint, color, base + 24);
    drawLine(paint, pinned, color("mark"), []);
    if (hovered !== null) drawLine(paint, hovered, color("soft"), [3, 3]);
    if (dragged !== null) {
      paint.fillStyle = color("accent");
      paint.globalAlpha = .2;
      paint.fillRect(xOf(dragged[0]), TOP, xOf(dragged[1]) - xOf(dragged[0]), high);
      paint.globalAlpha = 1;
    }
    drawPeak(paint, color("mark"), yOf(total[peak]), wide);
  }

  function drawSpans(paint, color, y) {
    paint.save();
    paint.beginPath(); paint.rect(LEFT, y, plotWidth(), lanes * LANE); paint.clip();
    paint.textAlign = "left";
    for (const [start, stop, name, depth] of data.spans) {
      if (stop < from || start > to || depth >= lanes) continue;
      const x = Math.max(xOf(start), LEFT), width = Math.max(Math.min(xOf(stop), LEFT + plotWidth()) - x, 1);
      paint.fillStyle = color("grid");
      paint.fillRect(x, y + depth * LANE, Math.max(width - 1, 1), LANE - 2);
      if (width > 30) {
        paint.save();
        paint.beginPath(); paint.rect(x, y + depth * LANE, width - 4, LANE); paint.clip();
        paint.fillStyle = color("soft");
        paint.fillText(data.names[name], x + 4, y + depth * LANE + LANE / 2 - .5);
        paint.restore();
      }
    }
    paint.restore();
  }

  function drawLine(paint, time, stroke, dashes) {
    if (time < from || time > to) return;
    const x = Math.round(xOf(time)) + .5;
    paint.strokeStyle = stroke;
    paint.setLineDash(dashes);
    paint.beginPath(); paint.moveTo(x, TOP - 4); paint.lineTo(x, TOP + plotHeight()); paint.stroke();
    paint.setLineDash([]);
  }

  function drawPeak(paint, ink, y, wide) {
    const x = xOf(times[peak]);
    if (x < LEFT || x > LEFT + wide) return;
    paint.fillStyle = ink;
    paint.beginPath(); paint.moveTo(x, y - 2); paint.lineTo(x - 5, y - 10); paint.lineTo(x + 5, y - 10); paint.fill();
    paint.textAlign = "left";
    paint.font = "600 12px system-ui, sans-serif";
    const label = `peak ${sizeText(total[peak])}`, room = paint.measureText(label).width;
    paint.fillText(label, x + 10 + room > LEFT + wide ? x - room - 10 : x + 9, Math.max(y - 9, 9));
  }

  function showTip(x) {
    const point = pointAt(hovered);
    tip.replaceChildren();
    const line = (label, value, mark) => {
      const row = make("p"), left = make("span");
      if (mark) left.append(mark);
      left.append(label);
      row.append(left, make("span", value));
      tip.append(row);
    };
    line(timeText(hovered), sizeText(total[point]));
    for (let k = KINDS - 1; k >= 0; k--)
      if (shown[k] && sums[k][point]) line(LABELS[k], sizeText(sums[k][point]), dot(k));
    tip.hidden = false;
    const left = x + 14 + tip.offsetWidth > canvas.clientWidth ? x - tip.offsetWidth - 14 : x + 14;
    tip.style.left = `${Math.max(left, 0)}px`;
  }

  // -- what is alive -------------------------------------------------------------------------------------------------

  let alive = [], listed = 0;
  function pin(time) {
    pinned = time;
    alive = [];
    for (let i = 0; i < count; i++) if (shown[kind[i]] && begin[i] <= time && time < end[i]) alive.push(i);
    alive.sort((a, b) => bytes[b] - bytes[a] || begin[a] - begin[b]);
    const sum = total[pointAt(time)], atPeak = time === times[peak];
    element("alive-title").textContent =
      `Alive at ${timeText(time)}${atPeak ? " (the peak)" : ""}: ${alive.length} blocks, ${sizeText(sum)}`;
    element("alive-title").dataset.ns = time;
    element("alive").replaceChildren();
    listed = 0;
    listMore();
    draw();
  }

  function listMore() {
    const sum = total[pointAt(pinned)] || 1;
    const next = alive.slice(listed, listed + ROWS_AT_ONCE);
    element("alive").append(...next.map(segment => blockRow(segment, sum)));
    listed += next.length;
    const rest = alive.slice(listed);
    element("more").hidden = !rest.length;
    element("more").textContent = `${rest.length} more, ${sizeText(rest.reduce((all, i) => all + bytes[i], 0))} in all`;
  }

  function blockRow(segment, sum) {
    const row = make("tr", undefined, "block");
    row.tabIndex = 0;
    const category = make("td", undefined, "kind");
    category.append(dot(kind[segment]), LABELS[kind[segment]]);
    const words = opWords(data.segments.op[segment]), op = make("td"), inner = words.pop();
    if (words.length) op.append(make("span", words.join(" › ") + " › ", "around"));
    op.append(inner ?? (begin[segment] === 0 ? "before the recording" : "outside of ops"));
    const module = data.segments.module[segment];
    const since = begin[segment] === 0 ? "the start" : timeText(begin[segment]);
    const until = end[segment] === Infinity ? "the end" : timeText(end[segment]);
    row.append(make("td", sizeText(bytes[segment]), "number"),
               make("td", `${(100 * bytes[segment] / sum).toFixed(1)} %`, "number"), category, op,
               make("td", module < 0 ? "" : data.names[module]),
               make("td", `${since} – ${until}`, "when"));
    const toggle = () => {
      if (row.nextSibling && row.nextSibling.className === "stack") row.nextSibling.remove();
      else row.after(stackRow(segment));
    };
    row.addEventListener("click", toggle);
    row.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
    return row;
  }

  function stackRow(segment) {
    const row = make("tr", undefined, "stack"), cell = make("td"), stack = data.segments.stack[segment];
    cell.colSpan = 6;
    if (stack < 0) cell.textContent = "No Python stack was recorded for it.";
    else {
      const frames = make("ol");
      frames.append(...data.stacks[stack].map(frame => make("li", data.names[frame])));
      cell.append(frames);
    }
    row.append(cell);
    return row;
  }

  // -- controls ------------------------------------------------------------------------------------------------------

  function fact(name, value, detail, id) {
    const box = make("div"), text = make("dd", value);
    if (id) text.id = id;
    if (detail) text.append(make("small", ` ${detail}`));
    box.append(make("dt", name), text);
    element("facts").append(box);
    return text;
  }
  function describe() {
    element("facts").replaceChildren();
    const last = total.length - 1;
    fact("Peak", sizeText(total[peak]), `at ${timeText(times[peak])}`, "peak").dataset.bytes = total[peak];
    fact("At the start", sizeText(total[0]));
    fact("At the end", sizeText(total[last]), undefined, "final").dataset.bytes = total[last];
    fact("Blocks", new Set(data.segments.block.filter((_, i) => shown[kind[i]])).size.toLocaleString("en"));
    fact("Recorded", timeText(duration));
  }
  function zoom(low, high) {
    from = low;
    to = Math.max(high, low + 10);
    element("reset").disabled = from === 0 && to === duration;
    draw();
  }
  function legend() {
    LABELS.forEach((label, k) => {
      if (!sums[k].some(value => value)) return;
      const button = make("button");
      button.type = "button";
      button.dataset.category = data.categories[k];
      button.setAttribute("aria-pressed", "true");
      button.append(dot(k), label);
      button.addEventListener("click", () => {
        shown[k] = !shown[k];
        button.setAttribute("aria-pressed", String(shown[k]));
        const wasPeak = pinned === times[peak];
        sumShown();
        describe();
        pin(wasPeak ? times[peak] : pinned);
      });
      element("legend").append(button);
    });
  }

  let pressed = null;
  canvas.addEventListener("pointerdown", event => { pressed = event.offsetX; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", event => {
    hovered = timeOf(event.offsetX);
    if (pressed !== null && Math.abs(event.offsetX - pressed) > 4)
      dragged = [timeOf(Math.min(pressed, event.offsetX)), timeOf(Math.max(pressed, event.offsetX))];
    draw();
    showTip(event.offsetX);
  });
  canvas.addEventListener("pointerup", event => {
    if (pressed === null) return;
    pressed = null;
    if (dragged === null) pin(timeOf(event.offsetX));
    else { const [low, high] = dragged; dragged = null; zoom(low, high); }
  });
  canvas.addEventListener("pointerleave", () => { hovered = null; tip.hidden = true; draw(); });
  canvas.addEventListener("keydown", event => {
    const move = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!move) return;
    event.preventDefault();
    pin(times[Math.min(Math.max(pointAt(pinned) + move, 0), times.length - 1)]);
  });
  element("to-peak").addEventListener("click", () => {
    if (times[peak] < from || times[peak] > to) zoom(0, duration);
    pin(times[peak]);
  });
  element("reset").addEventListener("click", () => zoom(0, duration));
  element("more").addEventListener("click", listMore);
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  if (!data.modulesKnown)
    element("note").textContent = "Recorded without with_modules=True, so no block knows its module.";
  sumShown();
  describe();
  legend();
  pin(times[peak]);
})();
