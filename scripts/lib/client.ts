// Lists the catalogs of a mirror, polls their pointers and reads a package of each, with the types of /openapi.json alone.
//
//   node client.js URL    prints a line for each catalog
import type { components, paths } from './openapi';

declare const process: { argv: string[] };
const mirror = process.argv[2] ?? '';

// Content of the whole answer of a path.
type Content<P extends keyof paths> = paths[P] extends { get: { responses: { 200: { content: infer C } } } } ? C[keyof C] : never;
type Names = { catalog?: string; package?: string };

async function ask(path: keyof paths, names: Names, tag?: string): Promise<Response> {
  const url = mirror + path.replace(/\{(\w+)\}/g, (_, name: keyof Names) => encodeURIComponent(names[name] ?? ''));
  const answer = await fetch(url, { headers: tag ? { 'If-None-Match': tag } : {} });
  if (answer.ok || answer.status === 304) return answer;
  const problem: components['schemas']['Problem'] = await answer.json();
  throw new Error(`${problem.status}: ${problem.detail}`);
}

const json = async <P extends keyof paths>(path: P, names: Names = {}): Promise<Content<P>> => (await ask(path, names)).json();

for (const catalog of (await json('/catalogs.json')).catalogs) {
  const first = await ask('/catalogs/{catalog}/current.json', { catalog });
  const current: Content<'/catalogs/{catalog}/current.json'> = await first.json();
  const again = await ask('/catalogs/{catalog}/current.json', { catalog }, first.headers.get('etag') ?? '');
  const { outcome } = await json('/catalogs/{catalog}/status.json', { catalog });
  const { packages } = await json('/catalogs/{catalog}/search.json', { catalog });
  const name = Object.keys(packages).sort().find((one) => /^\w/.test(one)) ?? '';
  const lines = (await (await ask('/catalogs/{catalog}/packages/{package}', { catalog, package: name })).text()).trim().split('\n');
  const found = await json('/catalogs/{catalog}/search', { catalog });
  console.log(catalog, current.packages === found.total, again.status, outcome, name, packages[name]?.channel, lines.length);
}
