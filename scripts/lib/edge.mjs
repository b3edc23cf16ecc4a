// The Worker in workerd, over a local R2 that is filled from the folder of a store.
//
//   node edge.mjs MINIFLARE MODULES STORE PORT [VARIABLE=VALUE...]
//
// MODULES is the output of `wasm-bindgen --target web`. Requests under /test/ are for the checks: /test/bucket/MODE makes the bucket work,
// fail, hang or answer late, /test/remove/KEY takes an object away, /test/memory is the size of the Worker's memory in bytes.
import { readFile, readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'

const [library, modules, store, port, ...variables] = process.argv.slice(2)
const { Miniflare } = createRequire(join(library, 'package.json'))('miniflare')

const shim = `
import wasm from './edge_bg.wasm'
import * as mirror from './edge.js'
const { memory } = mirror.initSync({ module: wasm })
let mode = 'works'
class R2Bucket {
  constructor(inner) { this.inner = inner }
  async answer(name, parts) {
    if (mode === 'fails') throw new Error('get: the service is unavailable (10043)')
    if (mode === 'hangs') await new Promise(done => setTimeout(done, 60000))
    if (mode === 'late') await new Promise(done => setTimeout(done, 1000))
    return await this.inner[name](...parts)
  }
  get(...parts) { return this.answer('get', parts) }
  head(...parts) { return this.answer('head', parts) }
}
export default {
  async fetch(request, env, context) {
    const [, kind, ...rest] = new URL(request.url).pathname.match(/^\\/test\\/(\\w+)\\/?(.*)$/) ?? []
    if (kind === 'bucket') return new Response(mode = rest[0])
    if (kind === 'remove') return new Response(await env.BUCKET.delete(rest[0]))
    if (kind === 'memory') return new Response(String(memory.buffer.byteLength))
    return mirror.fetch(request, { ...env, BUCKET: new R2Bucket(env.BUCKET) }, context)
  },
}`

async function files(folder) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  return found.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
}

const bundle = [{ type: 'ESModule', path: join(modules, 'shim.js'), contents: shim }]
for (const path of await files(modules)) {
  bundle.push({ type: path.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule', path, contents: await readFile(path) })
}
const worker = new Miniflare({
  // Its other port adds an entry of Miniflare's own, which compresses texts.
  unsafeDirectSockets: [{ host: '127.0.0.1', port: Number(port) }], modules: bundle, modulesRoot: modules, compatibilityDate: '2026-04-01',
  r2Buckets: ['BUCKET'], bindings: Object.fromEntries(variables.map(pair => pair.split(/=(.*)/s).slice(0, 2))),
})
const bucket = await worker.getR2Bucket('BUCKET')
const paths = (await files(store)).filter(path => !relative(store, path).startsWith('.tmp'))
async function fill() {
  for (let path = paths.pop(); path; path = paths.pop()) await bucket.put(relative(store, path), new Uint8Array(await readFile(path)))
}
await Promise.all(Array.from({ length: 16 }, fill))
console.log('ready', await worker.ready)
