// Runs Perfetto's trace processor on a trace, as Perfetto's UI does.
//   node trace_processor.mjs ENGINE_FOLDER TRACE
// Each line of standard input is SQL as a JSON string; prints one JSON object per row and line, then an empty line.
// ENGINE_FOLDER contains engine_bundle.node.js and trace_processor.wasm (see tests/setup.sh).
import fs from 'node:fs'; import path from 'node:path'; import readline from 'node:readline'; import vm from 'node:vm';
const [dir, trace] = process.argv.slice(2);
const glue = ['engine_bundle.js', 'engine_bundle.node.js'].map(n => path.join(dir, n)).find(fs.existsSync);
const errors = []; console.warn = (...a) => errors.push(a.join(' '));
// The parts of a web worker's environment that the bundle uses. memory64 is disabled, so that every Node version uses the same engine.
const validate = WebAssembly.Module;
globalThis.self = globalThis; globalThis.importScripts = () => {}; globalThis.WorkerGlobalScope = function () {};
globalThis.location = { href: 'file:///engine/' };
process.type = 'renderer'; // prevents the glue code from using Node's own file access
WebAssembly.Module = function (bytes) { if (bytes[8] === 5 && bytes[11] === 4) throw new Error('memory64 is off'); return new validate(bytes); };
const file = u => fs.readFileSync(path.join(dir, path.basename(String(u))));
globalThis.fetch = async u => ({ ok: true, status: 200, url: String(u), arrayBuffer: async () => { const b = file(u); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); } });
WebAssembly.instantiateStreaming = undefined;
globalThis.XMLHttpRequest = class { open(_m, u) { this.u = u; } send() { const b = file(this.u); this.response = b.buffer.slice(b.byteOffset, b.byteOffset + b.length); this.status = 200; this.onload?.(); } };
const src = fs.readFileSync(glue, 'utf8');
// The bundle does not signal when it is ready: the address of its request buffer is set last.
vm.runInThisContext(src.replace(/\n\/\/# sourceMappingURL[\s\S]*$/, '').replaceAll(/this\.reqBufferAddr\s*=\s*this\.wasmPtrCast\(/g, 'self.__ready=true,$&'), { filename: glue });
// --- minimal protobuf
const vint = n => { n = BigInt(n); const o = []; do { o.push(Number(n & 127n) | (n > 127n ? 128 : 0)); n >>= 7n; } while (n > 0n); return Buffer.from(o); };
const len = (f, b) => Buffer.concat([vint(f << 3 | 2), vint(b.length), b]); const num = (f, v) => Buffer.concat([vint(f << 3), vint(v)]);
function* fields(b) { let p = 0; const rd = () => { let r = 0n, s = 0n, c; do { c = b[p++]; r |= BigInt(c & 127) << s; s += 7n; } while (c & 128); return r; };
  while (p < b.length) { const t = Number(rd()), f = t >> 3, w = t & 7; if (w === 0) yield [f, rd()]; else if (w === 1) { yield [f, b.subarray(p, p + 8)]; p += 8; } else if (w === 5) { yield [f, b.subarray(p, p + 4)]; p += 4; } else { const n = Number(rd()); yield [f, b.subarray(p, p + n)]; p += n; } } }
function* varints(b) { for (let p = 0; p < b.length;) { let r = 0n, s = 0n, c; do { c = b[p++]; r |= BigInt(c & 127) << s; s += 7n; } while (c & 128); yield BigInt.asIntN(64, r); } }
// --- RPC
let seq = 0, inbox = Buffer.alloc(0), replies = [];
const port = { postMessage(d) { inbox = Buffer.concat([inbox, Buffer.from(d)]); drain(); }, start() {} };
function drain() { for (;;) { let p = 1, n = 0, s = 0, c; if (inbox.length < 2) return; do { if (p >= inbox.length) return; c = inbox[p++]; n += (c & 127) * 2 ** s; s += 7; } while (c & 128); if (inbox.length < p + n) return; replies.push(inbox.subarray(p, p + n)); inbox = inbox.subarray(p + n); } }
const call = (method, ...args) => { replies = []; port.onmessage({ data: new Uint8Array(len(1, Buffer.concat([num(1, seq++), num(2, method), ...args]))) }); return replies; };
const fatal = m => { for (const [f, v] of fields(m)) if (f === 5) { console.error('fatal: ' + v); process.exit(1); } };
function query(sql) {
  const names = [], rows = []; let cells = [], error = '';
  for (const m of call(3, len(103, len(1, Buffer.from(sql))))) { fatal(m); for (const [f, r] of fields(m)) if (f === 203) for (const [g, v] of fields(r)) {
    if (g === 1) names.push(String(v)); else if (g === 2) error = String(v); else if (g === 3) {
      let types = [], ints = [], dbl = [], blob = [], str = [];
      for (const [h, w] of fields(v)) { if (h === 1) types = [...varints(w)].map(Number); else if (h === 2) ints = [...varints(w)]; else if (h === 3) for (let i = 0; i < w.length; i += 8) dbl.push(w.readDoubleLE(i)); else if (h === 4) blob.push(w); else if (h === 5) str = String(w).split('\0'); }
      let i = 0, d = 0, b = 0, s = 0;
      for (const t of types) cells.push(t === 2 ? Number(ints[i++]) : t === 3 ? dbl[d++] : t === 4 ? str[s++] : t === 5 ? `<${blob[b++].length} bytes>` : null); } } }
  if (error) { console.error(`query failed: ${error}`); process.exitCode = 1; }
  for (let i = 0; i < cells.length; i += names.length) rows.push(Object.fromEntries(names.map((n, j) => [n, cells[i + j]])));
  return rows;
}
const ready = async () => { for (let i = 0; i < 1200 && !globalThis.__ready; i++) await new Promise(r => setTimeout(r, 25)); if (!globalThis.__ready) throw new Error('engine did not start: ' + errors.join('\n')); };
globalThis.onmessage({ data: port });
await ready();
for (const m of call(10)) for (const [f, v] of fields(m)) if (f === 210) for (const [g, w] of fields(v)) if (g === 2) console.error('engine: ' + w);
const t0 = performance.now();
const fd = fs.openSync(trace), chunk = Buffer.alloc(8 << 20); let total = 0;
for (let n; (n = fs.readSync(fd, chunk)) > 0; total += n) for (const m of call(1, len(101, chunk.subarray(0, n)))) { fatal(m); for (const [f, v] of fields(m)) if (f === 201) for (const [g, w] of fields(v)) if (g === 2) { console.error('load: ' + w); process.exitCode = 1; } }
for (const m of call(2)) { fatal(m); for (const [f, v] of fields(m)) if (f === 212) for (const [g, w] of fields(v)) if (g === 1) { console.error('finalize: ' + w); process.exitCode = 1; } }
console.error(`loaded ${total} bytes in ${(performance.now() - t0).toFixed(0)} ms`);
if (process.exitCode) process.exit();
for await (const line of readline.createInterface({ input: process.stdin })) {
  const rows = query(JSON.parse(line));
  if (process.exitCode) process.exit();
  console.log(rows.map(row => JSON.stringify(row) + '\n').join(''));
}
