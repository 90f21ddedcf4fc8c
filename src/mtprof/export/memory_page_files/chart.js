// The chart: bytes per category over time, scopes below, and the values at the pointer.

const canvas = element("canvas"), tip = element("tip");
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

// The part that does not change when the pointer moves is painted once and kept.
const layer = document.createElement("canvas");
let painted = "";
const colorOf = name => getComputedStyle(host).getPropertyValue(`--${name}`);

function draw() {
  const scale = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
  if (!width || !height) return; // not on the screen (any more)
  const state = JSON.stringify([from, to, shown, width, height, colorOf("ink")]);
  if (state !== painted) {
    painted = state;
    layer.width = width;
    layer.height = height;
    const paint = layer.getContext("2d");
    paint.scale(scale, scale);
    drawBytes(paint, scale);
  }
  canvas.width = width;
  canvas.height = height;
  const paint = canvas.getContext("2d");
  paint.drawImage(layer, 0, 0);
  paint.scale(scale, scale);
  if (count) drawLine(paint, pinned, colorOf("mark"), []);
  if (hovered !== null) drawLine(paint, hovered, colorOf("soft"), [3, 3]);
  if (dragged !== null) {
    paint.fillStyle = colorOf("accent");
    paint.globalAlpha = .2;
    paint.fillRect(xOf(dragged[0]), TOP, xOf(dragged[1]) - xOf(dragged[0]), plotHeight());
    paint.globalAlpha = 1;
  }
  if (total[peak]) drawPeak(paint, colorOf("mark"));
}

const highest = () => Math.max(total[peak] * 1.06, 1);

function drawBytes(paint, scale) {
  paint.font = "11.5px system-ui, sans-serif";
  const high = plotHeight(), wide = plotWidth(), base = TOP + high, top = highest();
  paint.textBaseline = "middle";
  for (const value of ticks(0, top, high / 45, byteStep)[0]) {
    const y = Math.round(base - value / top * high) + .5;
    paint.strokeStyle = colorOf("grid");
    paint.beginPath(); paint.moveTo(LEFT, y); paint.lineTo(LEFT + wide, y); paint.stroke();
    paint.fillStyle = colorOf("soft");
    paint.textAlign = "right";
    paint.fillText(sizeText(value), LEFT - 8, y);
  }

  // One column per device pixel: the highest moment in it, so that no peak is lost.
  const colors = sums.map((_, k) => colorOf(`c${k}`));
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

  paint.strokeStyle = colorOf("line");
  paint.beginPath(); paint.moveTo(LEFT, base + .5); paint.lineTo(LEFT + wide, base + .5); paint.stroke();
  paint.fillStyle = colorOf("soft");
  paint.textAlign = "center";
  const [marks, step] = ticks(from, to, Math.max(wide / 110, 3), roundStep);
  for (const value of marks) paint.fillText(timeText(value, step), xOf(value), base + 13);
  drawSpans(paint, base + 24);
  if (!count) {
    paint.font = "14px system-ui, sans-serif";
    paint.fillText(`No memory of ${data.device} was recorded.`, LEFT + wide / 2, TOP + high / 2);
  }
}

function drawSpans(paint, y) {
  paint.save();
  paint.beginPath(); paint.rect(LEFT, y, plotWidth(), lanes * LANE); paint.clip();
  paint.textAlign = "left";
  const [fill, ink] = [colorOf("grid"), colorOf("soft")];
  for (const [start, stop, name, depth] of data.spans) {
    if (stop < from || start > to || depth >= lanes) continue;
    const x = Math.max(xOf(start), LEFT), width = Math.max(Math.min(xOf(stop), LEFT + plotWidth()) - x, 1);
    paint.fillStyle = fill;
    paint.fillRect(x, y + depth * LANE, Math.max(width - 1, 1), LANE - 2);
    if (width > 30) {
      paint.save();
      paint.beginPath(); paint.rect(x, y + depth * LANE, width - 4, LANE); paint.clip();
      paint.fillStyle = ink;
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

function drawPeak(paint, ink) {
  const x = xOf(times[peak]), y = TOP + plotHeight() * (1 - total[peak] / highest()), last = LEFT + plotWidth();
  if (x < LEFT || x > last) return;
  paint.fillStyle = ink;
  paint.beginPath(); paint.moveTo(x, y - 2); paint.lineTo(x - 5, y - 10); paint.lineTo(x + 5, y - 10); paint.fill();
  paint.textAlign = "left";
  paint.textBaseline = "middle";
  paint.font = "600 12px system-ui, sans-serif";
  const label = `peak ${sizeText(total[peak])}`, room = paint.measureText(label).width;
  paint.fillText(label, x + 10 + room > last ? x - room - 10 : x + 9, Math.max(y - 9, 9));
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
  const scope = spanAt(hovered);
  if (scope) tip.append(make("p", scope, "scope"));
  for (let k = KINDS - 1; k >= 0; k--)
    if (shown[k] && sums[k][point]) line(LABELS[k], sizeText(sums[k][point]), dot(k));
  tip.hidden = false;
  const left = x + 14 + tip.offsetWidth > canvas.clientWidth ? x - tip.offsetWidth - 14 : x + 14;
  tip.style.left = `${Math.max(left, 0)}px`;
}

function zoom(low, high) {
  const least = 10;
  from = Math.max(0, Math.min(low, duration - least));
  to = Math.min(duration, Math.max(high, from + least));
  element("reset").disabled = from === 0 && to === duration;
  hovered = null; // the block under the pointer has moved
  tip.hidden = true;
  draw();
}
function zoomAround(time, factor) {
  zoom(time - (time - from) * factor, time + (to - time) * factor);
}
function bringIntoView(time) {
  if (time >= from && time <= to) return;
  const half = (to - from) / 2, middle = Math.min(Math.max(time, half), duration - half);
  zoom(middle - half, middle + half);
}
