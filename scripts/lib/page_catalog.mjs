// Compares what the page makes of whole catalogs with what other programs make of them.
//
//   node page_catalog.mjs edges LINES EDGES                          upgrades, with the edges that `opm-oracle graph` prints
//   node page_catalog.mjs ways LINES PAIRS PROGRAM STORE CATALOG     ways between random pairs, with those of `catalog-mirror upgrade`
//   node page_catalog.mjs manifests LINES                            ClusterExtension and Subscription of each channel, as YAML
//   node page_catalog.mjs basket LINES SEED IMAGE FILE             an ImageSetConfiguration of some packages; prints what it chooses
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { Package, extension, imageSet, subscription } from '../../shared/serving/api/page/rules.js';

// Packages of a catalog, read as the page reads them.
function packages(lines) {
  const all = new Map();
  for (const line of readFileSync(lines, 'utf8').trim().split('\n')) {
    const { schema, package: of, name } = JSON.parse(line);
    const owner = schema === 'olm.package' ? name : of;
    if (!all.has(owner)) all.set(owner, new Package(owner));
    all.get(owner).add(line);
  }
  return all;
}

// Upgrades of a package as `package channel from to`. opm draws a range from the entries of the channel alone.
const edges = (found) => [...found.channels].flatMap(([channel, entries]) => entries.flatMap((entry) => {
  const names = new Set([...entries.map(({ name }) => name), entry.replaces, ...entry.skips]);
  return [...names].filter((from) => from && found.upgrades(entry, from)).map((from) => [found.name, channel, from, entry.name].join(' '));
}));

function compareEdges(lines, drawn) {
  const all = packages(lines);
  const own = new Set([...all.values()].flatMap(edges));
  const theirs = new Set(readFileSync(drawn, 'utf8').trim().split('\n').map((line) => line.split('\t').toSpliced(3, 1).join(' ')));
  const wrong = [...own].filter((edge) => !theirs.has(edge)).concat([...theirs].filter((edge) => !own.has(edge)));
  if (wrong.length) throw new Error(`${wrong.length} edges differ, such as ${wrong[0]} (${own.has(wrong[0]) ? 'page' : 'opm'} alone)`);
  console.log(`${all.size} packages, ${own.size} upgrades`);
}

const run = (program, ...options) => new Promise((resolve, reject) => {
  execFile(program, options, (error, out, problem) => (out ? resolve(JSON.parse(out)) : reject(new Error(problem))));
});

async function compareWays(lines, pairs, program, store, catalog) {
  const all = [...packages(lines).values()].filter(({ bundles }) => bundles.size > 1);
  let [state, possible, left] = [1, 0, Number(pairs)];
  // A generator of Lehmer: the same pairs in each run.
  const pick = (items) => items[(state = (state * 48271) % 2147483647) % items.length];
  const one = async () => {
    while (left-- > 0) {
      const found = pick(all);
      const [from, to] = [pick([...found.bundles.keys()]), pick([...found.bundles.keys()])];
      const { channels } = await run(program, 'upgrade', '--json', '--store', store, catalog, found.name, from, to);
      for (const { channel, steps } of channels) {
        const way = [found.name, channel, from, ...(steps ?? ['none']).map((step) => step.bundle ?? step)].join(' ');
        const own = [found.name, channel, ...(found.steps(channel, from, to) ?? [from, 'none'])].join(' ');
        if (way !== own) throw new Error(`to ${to}: the page has ${own}, upgrade has ${way}`);
        possible += steps === null ? 0 : 1;
      }
    }
  };
  await Promise.all([one(), one()]);
  console.log(`${pairs} pairs, ${possible} ways`);
}

function manifests(lines) {
  for (const found of packages(lines).values()) {
    for (const channel of found.channels.keys()) {
      const bundle = found.bundles.get(found.heads(channel)[0]);
      if (!bundle) continue;
      const options = { found, channel, bundle, suffix: 'catalog-latest', mode: found.modes(bundle.name)[0], sourceNamespace: 'olm', isHead: true };
      console.log(`---\n${extension(options)}---\n${subscription(options)}`);
    }
  }
}

function basket(lines, seed, image, file) {
  const chosen = [...packages(lines).values()].filter(({ channels }) => channels.size).filter((_, at) => (at * 48271 + Number(seed)) % 7 === 0);
  const items = chosen.flatMap((found, at) => [...found.channels.keys()].slice(0, 1 + (at % 2)).map((channel) => {
    const head = found.version(found.heads(channel)[0]);
    return ['c', found.name, channel, at % 3 === 0 ? head : '', at % 3 === 0 ? head : ''];
  }));
  writeFileSync(file, imageSet(items, new Map([['c', { catalog: image }]]), new Map(chosen.map(({ name, defaultChannel }) => [`c/${name}`, defaultChannel]))));
  for (const [, name, channel, least] of items) console.log(name, channel, least);
}

const [, , what, ...options] = process.argv;
await { edges: compareEdges, ways: compareWays, manifests, basket }[what](...options);
