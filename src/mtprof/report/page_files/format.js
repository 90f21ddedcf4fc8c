"use strict";
// Numbers in readable form, and elements whose content is always text.
const D = JSON.parse(document.getElementById("data").textContent);
const COLOURS = {data: "--data", forward: "--forward", backward: "--backward", optimizer: "--optimizer",
  communication: "--communication", device: "--device", python: "--python", idle: "--idle", other: "--other"};
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(COLOURS[name] || name).trim(); }
// Text on a fill: dark if the fill is light.
function inkOn(fill) {
  const parts = fill.match(/^#(..)(..)(..)$/);
  if (!parts) return "#fff";
  const [r, g, b] = parts.slice(1).map((part) => parseInt(part, 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111" : "#fff";
}
function digits(value) {
  if (!value) return "0";
  const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 20)).replace("-", "−");
}
function scaled(value, steps) {
  for (const [size, unit] of steps) if (Math.abs(value) >= size * 0.9995) return digits(value / size) + " " + unit;
  const [size, unit] = steps[steps.length - 1];
  return digits(value / size) + " " + unit;
}
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
const COUNTS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const format = {
  time: (v) => v == null ? "–" : scaled(v, TIMES),
  size: (v) => v == null ? "–" : v === 0 ? "0 B" : scaled(v, SIZES),
  count: (v) => v == null ? "–" : Number.isInteger(v) ? v.toLocaleString("en") : digits(v),
  work: (v) => !v ? "" : Number.isInteger(v) && Math.abs(v) < 1000 ? String(v) : scaled(v, COUNTS),
  share: (v) => v == null ? "–" : (100 * v).toFixed(1) + " %",
  change: (v) => v == null ? "–" : (v > 0 ? "+" : "") + scaled(v, TIMES),
  ratio: (v) => v == null ? "–" : v > 9 ? `× ${digits(1 + v)}` : (v >= 0 ? "+" : "−") + Math.abs(100 * v).toFixed(1) + " %",
  text: (v) => v == null ? "" : String(v),
};
const exact = {
  time: (v) => v == null ? "" : Math.round(v).toLocaleString("en") + " ns",
  size: (v) => v == null ? "" : Math.round(v).toLocaleString("en") + " bytes",
  change: (v) => v == null ? "" : Math.round(v).toLocaleString("en") + " ns",
  count: (v) => v == null ? "" : String(v), work: (v) => v == null ? "" : Math.round(v).toLocaleString("en"),
  share: (v) => v == null ? "" : (100 * v).toPrecision(6) + " %", ratio: (v) => v == null ? "" : (100 * v).toPrecision(6) + " %", text: (v) => v == null ? "" : String(v),
};
function el(tag, options, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(options || {})) {
    if (value == null || value === false) continue;
    if (key === "class") made.className = value;
    else if (key === "style") for (const [name, one] of Object.entries(value)) made.style.setProperty(name, one);
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child != null) made.append(child instanceof Node ? child : String(child));
  return made;
}
const tip = {
  show(text, x, y) {
    const box = document.getElementById("tip");
    box.textContent = text;
    box.hidden = false;
    box.style.left = Math.min(x + 14, innerWidth - box.offsetWidth - 8) + "px";
    box.style.top = Math.min(y + 14, innerHeight - box.offsetHeight - 8) + "px";
  },
  hide() { document.getElementById("tip").hidden = true; },
};
// An entry is a text, the key of its colour and, if it has rows, their address.
function legendOf(entries) {
  return el("div", {class: "legend"}, entries.map(([name, key, href]) => el(href ? "a" : "span", {href},
    el("span", {class: "swatch", style: {background: `var(${COLOURS[key] || "--other"})`}}), name)));
}
// A horizontal bar of parts: [name, key of its colour, time]. Screen readers get a sentence, because it is a picture.
function partsBar(parts, whole, label) {
  return el("div", {class: "stack", role: "img", "aria-label": `${label}: ` + parts.map(([name, , time]) => `${name} ${format.time(time)}, ${format.share(time / whole)}`).join("; ")},
    parts.filter(([, , time]) => time > 0).map(([name, key, time]) => el("span", {style: {background: `var(${COLOURS[key]})`, color: inkOn(colour(key)), width: `${100 * time / whole}%`, ...(time / whole > 0.07 ? {} : {padding: "0"})},
      title: `${name}: ${exact.time(time)}, ${format.share(time / whole)}`}, time / whole > 0.07 ? `${name} ${format.share(time / whole)}` : "")));
}
