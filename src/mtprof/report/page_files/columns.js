"use strict";
// Columns of numbers, as `columns.py` packs them.
const BYTES = {u1: Uint8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array};
async function unpack(column) {
  const raw = Uint8Array.from(atob(column.data), (c) => c.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  const shuffled = new Uint8Array(await new Response(stream).arrayBuffer());
  const kind = BYTES[column.type], size = kind.BYTES_PER_ELEMENT, count = column.count;
  const bytes = new Uint8Array(count * size);
  for (let part = 0; part < size; part++) for (let i = 0; i < count; i++) bytes[i * size + part] = shuffled[part * count + i];
  const values = new kind(bytes.buffer);
  if (!column.delta) return values;
  const sums = new Float64Array(count);
  let sum = 0;
  for (let i = 0; i < count; i++) sums[i] = sum += values[i];
  return sums;
}
async function unpackAll(columns) {
  const names = Object.keys(columns);
  const values = await Promise.all(names.map((name) => unpack(columns[name])));
  return Object.fromEntries(names.map((name, i) => [name, values[i]]));
}
