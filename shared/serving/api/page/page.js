// The page of a mirror. It reads the mirror's documents by relative URLs, so it works below any path. Catalogs are foreign input:
// their texts become nodes and never HTML, which the policy of the page also forbids to the browser.

// --- Limits

const TEXT_MAX = 200; // characters of a text before "more"
const TEXT_WHOLE = 100_000; // characters of any text
const ROWS = 100; // rows of a list before "more"
const ICON_MAX = 700_000; // characters of base64, 512 kB
const CHANGES_MAX = 200; // packages of one list of changes
const ICONS = ['image/svg+xml', 'image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const LIFECYCLE = 'io.openshift.operators.lifecycles.v1alpha1';

// --- Nodes

function el(name, fields, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(fields ?? {})) {
    if (typeof value === 'function') node.addEventListener(key, value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return node;
}

function svg(name, fields, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(fields)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Shows what a reader would not see: control, direction and other format characters.
const escaped = (value) =>
  (typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value))
    .slice(0, TEXT_WHOLE)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);

// Returns foreign text, cut without a button: for links and buttons, which hold no others.
const brief = (value, most = TEXT_MAX) => el('bdi', {}, escaped(value).slice(0, most));

// Returns foreign text, cut with a button for the rest.
function text(value, most = TEXT_MAX) {
  const whole = escaped(value);
  if (whole.length <= most) return brief(value, most);
  const node = el('bdi', {}, `${whole.slice(0, most)}…`);
  const more = el('button', { type: 'button', class: 'more', click: () => { node.textContent = whole; more.remove(); } }, 'more');
  return [node, more];
}

// Returns a link to another host, which it shows. Other schemes than these are text.
function link(url, label) {
  let target;
  try {
    target = new URL(url);
  } catch {
    return text(label || url);
  }
  if (!['https:', 'http:', 'mailto:'].includes(target.protocol)) return text(label || url);
  const host = target.host || target.pathname;
  const anchor = el('a', { href: target.href, target: '_blank', rel: 'noopener noreferrer' }, brief(label || host));
  return label && label !== host ? [anchor, ' ', el('small', {}, `(${escaped(host).slice(0, TEXT_MAX)})`)] : anchor;
}

function icon(found) {
  const { base64data: data, mediatype } = found ?? {};
  if (typeof data !== 'string' || data.length > ICON_MAX || !ICONS.includes(mediatype) || !/^[A-Za-z0-9+/=\s]+$/.test(data)) return;
  const image = el('img', { src: `data:${mediatype};base64,${data.replace(/\s/g, '')}`, alt: '', loading: 'lazy' });
  image.addEventListener('error', () => image.remove());
  return image;
}

const facts = (rows) =>
  el('dl', { class: 'facts' }, rows.filter(([, value]) => value && value.length !== 0).map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));

// Returns items with commas between them.
const commas = (items) => items.flatMap((item, at) => (at ? [', ', item] : [item]));

// Returns a list of which some rows are shown at first.
function rows(items, row, make) {
  const node = make();
  let shown = 0;
  const more = el('button', { type: 'button', click: () => show(shown + 5 * ROWS) });
  const show = (until) => {
    node.append(...items.slice(shown, until).map(row));
    shown = Math.min(until, items.length);
    more.textContent = `Show more: ${items.length - shown} are left`;
    more.hidden = shown === items.length;
  };
  show(ROWS);
  return [node, more];
}

function copied(title, content, level = 'h3') {
  const said = el('span', { role: 'status' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(content);
      said.textContent = ' Copied';
    } catch {
      said.textContent = ' The browser does not allow it: select the text';
    }
  };
  return el('section', { 'aria-label': title }, el(level, {}, title), el('button', { type: 'button', click: copy }, `Copy ${title}`), said,
    el('pre', { tabindex: '0' }, el('code', {}, content)));
}

// --- Markdown, as nodes. Raw HTML and images stay text.

const INLINE = /`([^`\n]{1,500})`|\*\*([^*\n]{1,500})\*\*|__([^_\n]{1,500})__|\*([^*\s][^*\n]{0,500})\*|\[([^[\]\n]{1,300})\]\(([^()\s]{1,2000})\)|<?(https?:\/\/[^\s<>()"']{1,2000})>?/g;

function inline(source) {
  const nodes = [];
  let end = 0;
  for (const found of source.matchAll(INLINE)) {
    const [all, code, strong, bold, emphasis, label, target, url] = found;
    nodes.push(escaped(source.slice(end, found.index)));
    end = found.index + all.length;
    if (code) nodes.push(el('code', {}, escaped(code)));
    else if (strong || bold) nodes.push(el('strong', {}, escaped(strong || bold)));
    else if (emphasis) nodes.push(el('em', {}, escaped(emphasis)));
    else nodes.push(link(target || url, label));
  }
  return [...nodes, escaped(source.slice(end))];
}

const cells = (line, name) => line.trim().replace(/^\||\|$/g, '').split('|').slice(0, 30).map((cell) => el(name, {}, inline(cell.trim())));

// Blocks by the form of their first line. Each takes its lines and returns a node. The first line is the last of the array, because to
// take one from the front of an array can cost its length.
const BLOCKS = [
  [/^\s{0,3}(```|~~~)/, (lines) => {
    const [fence] = lines.pop().trim().match(/^(```|~~~)/);
    const code = [];
    while (lines.length && !lines.at(-1).trim().startsWith(fence)) code.push(escaped(lines.pop()));
    lines.pop();
    return el('pre', { tabindex: '0' }, el('code', {}, code.join('\n')));
  }],
  [/^\s{0,3}#{1,6}\s/, (lines) => el('h3', {}, inline(lines.pop().replace(/^[\s#]+|[\s#]+$/g, '')))],
  [/^\s*([-*+]|\d{1,9}[.)])\s/, (lines) => {
    const list = el(/^\s*\d/.test(lines.at(-1)) ? 'ol' : 'ul', {});
    while (lines.length && lines.at(-1).trim()) {
      const item = lines.pop();
      if (/^\s*([-*+]|\d{1,9}[.)])\s/.test(item) || !list.lastChild) list.append(el('li', {}, inline(item.replace(/^\s*\S+\s+/, ''))));
      else list.lastChild.append(' ', ...inline(item.trim()).flat(Infinity));
    }
    return list;
  }],
  [/^\s{0,3}>/, (lines) => {
    const quoted = [];
    while (lines.length && /^\s{0,3}>/.test(lines.at(-1))) quoted.push(lines.pop().replace(/^\s*>\s?/, ''));
    return el('blockquote', {}, inline(quoted.join(' ')));
  }],
  [/\|/, (lines) => {
    if (!/^[\s|:-]*-[\s|:-]*$/.test(lines.at(-2) ?? '')) return paragraph(lines);
    const head = el('tr', {}, cells(lines.pop(), 'th'));
    lines.pop();
    const body = [];
    while (lines.length && lines.at(-1).includes('|')) body.push(el('tr', {}, cells(lines.pop(), 'td')));
    return el('div', { class: 'scroll', tabindex: '0' }, el('table', {}, el('thead', {}, head), el('tbody', {}, body)));
  }],
  [/^/, paragraph],
];

function paragraph(lines) {
  const taken = [lines.pop()];
  while (lines.length && lines.at(-1).trim() && !BLOCKS.slice(0, 4).some(([form]) => form.test(lines.at(-1)))) taken.push(lines.pop());
  return el('p', {}, inline(taken.join(' ')));
}

function markdown(source) {
  const node = el('div', { class: 'markdown' });
  const lines = String(source ?? '').slice(0, TEXT_WHOLE).split(/\r?\n/).reverse();
  while (lines.length) {
    if (lines.at(-1).trim()) node.append(BLOCKS.find(([form]) => form.test(lines.at(-1)))[1](lines));
    else lines.pop();
  }
  return node;
}

// --- Documents of the mirror

class Failure extends Error {
  constructor(status, path, detail) {
    super(detail || `The mirror answered ${status} for ${path}`);
    this.status = status;
  }
}

async function open(path, signal, cache = 'default') {
  const answer = await fetch(path, { signal, cache });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Failure(answer.status, path, typeof problem.detail === 'string' ? `${answer.status}: ${escaped(problem.detail)}` : undefined);
}

const json = async (path, signal, cache) => (await open(path, signal, cache)).json();
const catalogPath = (catalog, rest) => `catalogs/${encodeURIComponent(catalog)}/${rest}`;

// Makes a view of one published state: a publication between its requests loads it again.
async function ofOneState(catalog, signal, make) {
  let current = await json(catalogPath(catalog, 'current.json'), signal);
  for (let attempt = 0; ; attempt++) {
    const made = await make(current, attempt ? 'no-cache' : 'default');
    const after = await json(catalogPath(catalog, 'current.json'), signal, 'no-cache');
    if (after.contentHash === current.contentHash || attempt === 3) return made;
    current = after;
  }
}

// Passes each line of a document to `each`, which may not keep it: a package can have 40 MB.
async function lines(path, signal, cache, each) {
  const reader = (await open(path, signal, cache)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = [];
  for (;;) {
    const { done, value } = await reader.read();
    const parts = (value ?? '').split('\n');
    for (const part of parts.slice(0, -1)) {
      each([...rest, part].join(''));
      rest = [];
    }
    rest.push(parts.at(-1));
    if (done) break;
  }
  if (rest.join('').trim()) throw new Failure(200, path, `The answer for ${path} ends in the middle of a line`);
}

// --- Versions (semver.org 2.0.0; ranges as OLM reads them)

function parseVersion(value) {
  const found = /^(0|[1-9]\d{0,14})\.(0|[1-9]\d{0,14})\.(0|[1-9]\d{0,14})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/.exec(value ?? '');
  return found && { numbers: found.slice(1, 4).map(Number), pre: found[4]?.split('.') ?? [] };
}

// Returns the order of two versions that were read.
function orderOf(a, b) {
  for (let at = 0; at < 3; at++) if (a.numbers[at] !== b.numbers[at]) return a.numbers[at] - b.numbers[at];
  if (!a.pre.length || !b.pre.length) return b.pre.length - a.pre.length;
  for (let at = 0; at < Math.min(a.pre.length, b.pre.length); at++) {
    const [left, right] = [a.pre[at], b.pre[at]];
    if (left === right) continue;
    const [isLeft, isRight] = [/^\d+$/.test(left), /^\d+$/.test(right)];
    if (isLeft && isRight) return left.length - right.length || (left < right ? -1 : 1);
    if (isLeft !== isRight) return isLeft ? -1 : 1;
    return left < right ? -1 : 1;
  }
  return a.pre.length - b.pre.length;
}

const COMPARED = {
  '': (order) => order === 0, '=': (order) => order === 0, '==': (order) => order === 0, '!=': (order) => order !== 0, '!': (order) => order !== 0,
  '>': (order) => order > 0, '>=': (order) => order >= 0, '<': (order) => order < 0, '<=': (order) => order <= 0,
};

// Returns the tests of one part of a range, such as `>=1.2.x`; undefined if it cannot be read.
function testsOf(part) {
  const [, operator, bound] = /^(\D*)(\d.*)$/.exec(part) ?? [];
  if (!Object.hasOwn(COMPARED, operator ?? 'none')) return undefined;
  const [, major, minor] = /^(\d+)(?:\.(\d+|x))?\.x$/.exec(bound) ?? [];
  if (major === undefined) {
    const parsed = parseVersion(bound);
    return parsed && [(version) => COMPARED[operator](orderOf(version, parsed))];
  }
  // `1.x` ends before 2.0.0, and both `1.0.x` and `1.x.x` before 1.1.0.
  const number = Number(minor ?? 0) || 0;
  const low = `${major}.${number}.0`;
  const end = minor === undefined ? `${Number(major) + 1}.0.0` : `${major}.${number + 1}.0`;
  const parts = { '>': [`>=${end}`], '>=': [`>=${low}`], '<': [`<${low}`], '<=': [`<${end}`], '!': [`<${low}`, `>=${end}`] }[operator.replace('!=', '!')];
  return (parts ?? [`>=${low}`, `<${end}`]).flatMap(testsOf);
}

// Returns a test of versions that were read. A range that cannot be read has no versions.
function parseRange(range) {
  const wanted = [[]];
  for (const part of range.slice(0, 10_000).trim().replace(/([<>=])\s+/g, '$1').split(/\s+/)) {
    const tests = part === '||' ? [] : testsOf(part);
    if (!tests) return () => false;
    if (part === '||') wanted.push([]);
    wanted.at(-1).push(...tests);
  }
  return (version) => wanted.every((all) => all.length) && wanted.some((all) => all.every((test) => test(version)));
}

// --- A package

const list = (value) => (Array.isArray(value) ? value : []);
const string = (value) => (typeof value === 'string' ? value : '');

// Reads the lines of a package, and keeps what the page shows.
class Package {
  constructor(name) {
    Object.assign(this, { name, description: '', defaultChannel: '', channels: new Map(), bundles: new Map(), deprecations: [], lifecycles: [], texts: new Map() });
  }

  // Equal descriptions of many versions are kept once.
  kept(value) {
    if (!this.texts.has(value)) this.texts.set(value, value);
    return this.texts.get(value);
  }

  add(line) {
    const meta = JSON.parse(line);
    if (meta.schema === 'olm.package') {
      this.description = string(meta.description);
      this.defaultChannel = string(meta.defaultChannel);
      this.icon = meta.icon;
    } else if (meta.schema === 'olm.channel') {
      const entries = list(meta.entries).filter((entry) => typeof entry?.name === 'string');
      this.channels.set(string(meta.name), entries.map(({ name, replaces, skips, skipRange }) => ({
        name, replaces: string(replaces), skips: list(skips).filter((skip) => typeof skip === 'string'), skipRange: string(skipRange), inRange: parseRange(string(skipRange)),
      })));
    } else if (meta.schema === 'olm.bundle') this.addBundle(meta);
    else if (meta.schema === 'olm.deprecations') this.deprecations.push(...list(meta.entries));
    else if (meta.schema === LIFECYCLE) this.lifecycles.push(list(meta.versions));
  }

  addBundle(meta) {
    const bundle = { name: string(meta.name), image: string(meta.image), version: '', provided: [], required: [], packages: [] };
    for (const { type, value } of list(meta.properties).filter((property) => property?.value)) {
      if (type === 'olm.package') bundle.version = string(value.version);
      else if (type === 'olm.gvk') bundle.provided.push(value);
      else if (type === 'olm.gvk.required') bundle.required.push(value);
      else if (type === 'olm.package.required') bundle.packages.push(value);
      else if (type === 'olm.csv.metadata') bundle.csv = this.csv(value);
    }
    bundle.parsed = parseVersion(bundle.version);
    this.bundles.set(bundle.name, bundle);
  }

  csv({ displayName, description, provider, links, maintainers, installModes, minKubeVersion, annotations }) {
    return {
      displayName: this.kept(string(displayName)), description: this.kept(string(description)), provider: string(provider?.name),
      links: list(links).slice(0, 50), maintainers: list(maintainers).slice(0, 50), installModes: list(installModes),
      minKubeVersion: string(minKubeVersion), capabilities: string(annotations?.capabilities),
    };
  }

  version(name) {
    return this.bundles.get(name)?.version || '';
  }

  parsed(name) {
    return this.bundles.get(name)?.parsed;
  }

  // Orders names by their versions, those without one first.
  compare(one, other) {
    const [a, b] = [this.parsed(one), this.parsed(other)];
    return (a && b ? orderOf(a, b) : (a ? 1 : 0) - (b ? 1 : 0)) || (one < other ? -1 : one > other ? 1 : 0);
  }

  // Entries of a channel that no other entry replaces or skips.
  heads(channel) {
    const entries = this.channels.get(channel) ?? [];
    const left = new Set(entries.flatMap(({ replaces, skips }) => [replaces, ...skips]));
    return entries.filter(({ name }) => !left.has(name)).map(({ name }) => name);
  }

  head() {
    return this.heads(this.defaultChannel)[0];
  }

  // Names of all versions, the newest first, also of entries without a bundle.
  versions() {
    const names = new Set([...this.bundles.keys(), ...[...this.channels.values()].flat().map(({ name }) => name)]);
    return [...names].sort((one, other) => this.compare(other, one));
  }

  deprecation(schema, name) {
    return this.deprecations.find(({ reference }) => reference?.schema === schema && (name === undefined || reference.name === name))?.message;
  }

  // Returns true if a channel's entry upgrades from a version.
  upgrades(entry, from) {
    return entry.replaces === from || entry.skips.includes(from) || (this.parsed(from) && entry.inRange(this.parsed(from)));
  }

  // Fewest steps from one version to another within a channel, of several ways the one over the newest; undefined if there is none.
  steps(channel, from, to) {
    const entries = [...(this.channels.get(channel) ?? [])].sort((one, other) => this.compare(other.name, one.name));
    if (!entries.some(({ name }) => name === to)) return undefined;
    const ranged = entries.filter(({ skipRange }) => skipRange);
    const named = new Map();
    for (const entry of entries) {
      for (const name of [entry.replaces, ...entry.skips]) {
        if (!named.has(name)) named.set(name, []);
        named.get(name).push(entry);
      }
    }
    const before = new Map([[from, undefined]]);
    for (const at of before.keys()) {
      if (at === to) {
        const way = [];
        for (let step = to; step !== undefined; step = before.get(step)) way.unshift(step);
        return way;
      }
      // Without ranges only what names the version is asked: a channel may have 10,000 entries.
      for (const entry of ranged.length ? entries : named.get(at) ?? []) if (!before.has(entry.name) && this.upgrades(entry, at)) before.set(entry.name, at);
    }
  }

  // Reason for which no channel leads from one version to another.
  reason(from, to) {
    const both = [...this.channels].filter(([, entries]) => [from, to].every((name) => entries.some((entry) => entry.name === name)));
    if (!both.length) return 'No channel has both versions.';
    if (this.compare(from, to) > 0) return 'Upgrades lead to newer versions only.';
    return `No upgrades lead from this version to that one in ${both.map(([name]) => escaped(name).slice(0, TEXT_MAX)).slice(0, 10).join(', ')}.`;
  }

  // Support of a version on a day: by its document, if there is exactly one.
  support(version, day) {
    const parsed = parseVersion(version);
    const minor = parsed && `${parsed.numbers[0]}.${parsed.numbers[1]}`;
    const found = this.lifecycles.length === 1 ? this.lifecycles[0].find((one) => one?.name === minor) : undefined;
    if (!found) return { until: 'no data', on: 'no data' };
    const phases = list(found.phases);
    const phase = phases.find(({ startDate, endDate }) => startDate <= day && day <= endDate);
    const platform = list(found.platformCompatibility).find(({ name }) => name === 'openshift');
    return {
      until: phase ? `${phase.name} until ${phase.endDate}` : phases.some(({ startDate }) => startDate > day) ? 'not yet' : 'self-support',
      on: list(platform?.versions).join(', ') || 'no data',
    };
  }
}

// --- Search, by the rules of the mirror's own

const fold = (value) => value.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
const split = (value) => value.split(/[^\p{L}\p{N}\p{M}]+/u).filter(Boolean);
const terms = (value) => split(value).flatMap((word) => split(fold(word)));
const words = (value) => split(value).flatMap((word) => [word, ...word.split(/(?<=[^\p{Lu}])(?=\p{Lu})/u)]).flatMap(terms);

// Returns packages with their words by weight.
function indexed(document) {
  const packages = Object.entries({ ...document.packages, ...document.shortened });
  return packages.map(([name, found]) => ({
    name,
    ...found,
    fields: [
      [8, words(name)], [7, words(string(found.displayName))], [5, words([...list(found.keywords), ...list(found.kinds)].join(' '))],
      [3, words(string(found.provider))], [2, words(string(found.summary))], [1, string(found.words).split(' ')],
    ],
  }));
}

function score(found, query) {
  let sum = 0;
  for (const term of query) {
    const field = found.fields.find(([, all]) => all.some((word) => word.startsWith(term)));
    if (!field) return 0;
    sum += field[0] + (field[1].includes(term) ? 1 : 0);
  }
  return sum;
}

// --- Places: `#/c/CATALOG/p/PACKAGE?channel=NAME`. The basket stays in all of them.

function place() {
  const [path, query] = location.hash.slice(1).split('?');
  const decode = (part) => { try { return decodeURIComponent(part); } catch { return part; } };
  return { parts: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function href(parts, fields = {}) {
  const query = new URLSearchParams();
  for (const item of place().query.getAll('b')) query.append('b', item);
  for (const [key, value] of Object.entries(fields)) if (value) query.set(key, value);
  return `#/${parts.map(encodeURIComponent).join('/')}${query.size ? `?${query}` : ''}`;
}

function basket() {
  const items = place().query.getAll('b').map((item) => { try { return JSON.parse(item); } catch { return undefined; } });
  return items.filter((item) => Array.isArray(item) && item.length === 5 && item.every((part) => typeof part === 'string'));
}

function setBasket(items) {
  const { parts, query } = place();
  query.delete('b');
  for (const item of items) query.append('b', JSON.stringify(item));
  location.hash = `#/${parts.map(encodeURIComponent).join('/')}${query.size ? `?${query}` : ''}`;
}

// --- What a site takes away. Each foreign value is quoted: a JSON text is a double-quoted scalar of YAML.

const quote = (value) => String(JSON.stringify(value)).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (letter) => {
  const code = letter.codePointAt(0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
});

// People paste a reference into a shell, which would run another text.
const isReference = (image) => /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/.test(image);

// OLM v1 takes names of channels that are subdomains of DNS (RFC 1123). For another one, such as Stable, the version alone selects.
const isSubdomain = (name) => name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);

const extension = (name, channel, version) => `apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata:
  name: ${quote(name)}
spec:
  namespace: ${quote(name)}
  serviceAccount:
    name: ${quote(`${name}-installer`)}
  source:
    sourceType: Catalog
    catalog:
      packageName: ${quote(name)}
${isSubdomain(channel) ? `      channels: [${quote(channel)}]\n` : ''}      version: ${quote(version)}
`;

const subscription = (name, channel, bundle, catalog) => `apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: ${quote(name)}
  namespace: openshift-operators
spec:
  name: ${quote(name)}
  channel: ${quote(channel)}
  startingCSV: ${quote(bundle)}
  source: ${quote(catalog)}
  sourceNamespace: openshift-marketplace
`;

// Returns the image of a catalog: that of its source by digest, or the mirror's own.
function catalogImage(catalog, { source }) {
  const isImage = /^sha256:[0-9a-f]{64}$/.test(source?.revision) && !/^(dir|oci|git|compose|https?|archive|catalog)[:+]/.test(source.ref);
  if (!isImage) return `${location.host}/${catalog}:latest`;
  const [repository] = source.ref.replace(/^docker:\/\//, '').split('@');
  return `${repository.replace(/:[^:/]*$/, '')}@${source.revision}`;
}

function imageSet(items, images, defaults) {
  const out = ['apiVersion: mirror.openshift.io/v2alpha1', 'kind: ImageSetConfiguration', 'mirror:', '  operators:'];
  for (const catalog of new Set(items.map(([of]) => of))) {
    out.push(`    - catalog: ${quote(images.get(catalog))}`, '      packages:');
    const ofCatalog = items.filter(([of]) => of === catalog);
    for (const name of new Set(ofCatalog.map(([, of]) => of))) {
      const channels = ofCatalog.filter(([, of]) => of === name);
      out.push(`        - name: ${quote(name)}`);
      if (!channels.some(([, , channel]) => channel === defaults.get(`${catalog}/${name}`))) out.push(`          defaultChannel: ${quote(channels[0][2])}`);
      out.push('          channels:');
      for (const [, , channel, least, most] of channels) {
        out.push(`            - name: ${quote(channel)}`);
        if (least) out.push(`              minVersion: ${quote(least)}`);
        if (most) out.push(`              maxVersion: ${quote(most)}`);
      }
    }
  }
  return `${out.join('\n')}\n`;
}

// --- Views

const heading = (...children) => el('h1', { tabindex: '-1' }, children);

function age(value) {
  const then = new Date(value);
  if (Number.isNaN(then.getTime())) return text(value);
  const minutes = Math.max(0, Math.round((Date.now() - then) / 60_000));
  const [count, unit] = minutes < 120 ? [minutes, 'minute'] : minutes < 2880 ? [Math.round(minutes / 60), 'hour'] : [Math.round(minutes / 1440), 'day'];
  return el('time', { datetime: then.toISOString(), title: then.toISOString() }, `${count} ${unit}${count === 1 ? '' : 's'} ago`);
}

async function viewCatalogs({ signal }) {
  const { catalogs } = await json('catalogs.json', signal);
  const names = list(catalogs).filter((name) => typeof name === 'string');
  // An unavailable catalog is absent.
  const absent = (error) => { if (error.status === 404) return undefined; throw error; };
  const found = await Promise.all(names.map(async (name) => ({
    name,
    current: await json(catalogPath(name, 'current.json'), signal).catch(absent),
    status: await json(catalogPath(name, 'status.json'), signal).catch(() => ({})),
  })));
  const published = found.filter(({ current }) => current);
  const row = ({ name, current, status }) => el('li', {},
    el('h2', {}, el('a', { href: href(['c', name]) }, brief(name))),
    facts([
      ['Packages', String(current.packages)], ['Published', age(current.publishedAt)],
      ['Last poll', status.lastPoll && [age(status.lastPoll), status.error && el('p', { class: 'warn' }, text(status.error))]],
      ['Size', `${(current.size / 1e6).toFixed(1)} MB`], ['Source', text(current.source?.ref)], ['Digest', text(current.source?.revision)],
    ]));
  const nothing = el('p', {}, 'No catalog is published yet.');
  return [heading('Operator catalogs'), published.length ? rows(published, row, () => el('ul', { class: 'plain results' })) : nothing];
}

// Packages of a catalog; of one from before search existed, their names.
async function packagesOf(catalog, signal, cache) {
  try {
    return indexed(await json(catalogPath(catalog, 'search.json'), signal, cache));
  } catch (error) {
    if (error.status !== 404) throw error;
    const { packages } = await json(catalogPath(catalog, 'packages'), signal, cache);
    return indexed({ packages: Object.fromEntries(list(packages).map(({ name }) => [name, {}])) });
  }
}

const FACETS = [['category', 'Category', 'categories'], ['provider', 'Provider', 'provider'], ['capability', 'Capability', 'capability'], ['arch', 'CPU', 'arches']];

async function viewCatalog({ parts: [, catalog], query, signal }) {
  const packages = await ofOneState(catalog, signal, (_, cache) => packagesOf(catalog, signal, cache));
  const values = (found, field) => (Array.isArray(found[field]) ? found[field] : found[field] ? [found[field]] : []);
  const input = el('input', { type: 'search', name: 'q', value: query.get('q') ?? '', autocomplete: 'off' });
  const selects = FACETS.map(([name, label, field]) => {
    const counts = new Map();
    for (const value of packages.flatMap((found) => values(found, field))) counts.set(value, (counts.get(value) ?? 0) + 1);
    const options = [...counts].sort(([one], [other]) => (one < other ? -1 : 1)).slice(0, 500);
    const select = el('select', { name }, el('option', { value: '' }, 'any'),
      options.map(([value, count]) => el('option', { value, selected: value === query.get(name) }, `${escaped(value).slice(0, TEXT_MAX)} (${count})`)));
    return { name, field, select, node: el('label', {}, label, select) };
  });
  const count = el('p', { role: 'status' });
  const results = el('div', {});
  const row = ({ name, displayName, summary, version, channel, provider }) => el('li', {},
    el('a', { href: href(['c', catalog, 'p', name]) }, el('strong', {}, brief(displayName || name))), ' ', el('small', {}, text(name)),
    summary && el('div', {}, text(summary)),
    el('small', {}, commas([version && text(version), channel && [text('channel '), text(channel)], provider && text(provider)].filter(Boolean))));
  const update = () => {
    const asked = terms(input.value);
    const chosen = selects.filter(({ select }) => select.value);
    const fitting = packages.filter((found) => chosen.every(({ field, select }) => values(found, field).includes(select.value)));
    const scored = fitting.map((found) => [asked.length ? score(found, asked) : 1, found]).filter(([points]) => points);
    scored.sort(([a, one], [b, other]) => b - a || (asked.length ? one.name.length - other.name.length : 0) || (one.name < other.name ? -1 : 1));
    count.textContent = `${scored.length} of ${packages.length} packages`;
    results.replaceChildren(...rows(scored.map(([, found]) => found), row, () => el('ul', { class: 'plain results' })));
    const fields = Object.fromEntries(chosen.map(({ name, select }) => [name, select.value]));
    history.replaceState(null, '', href(['c', catalog], { q: input.value, ...fields }));
  };
  input.addEventListener('input', update);
  for (const { select } of selects) select.addEventListener('change', update);
  update();
  return [
    heading(brief(catalog)),
    el('p', {}, el('a', { href: href(['c', catalog, 'changes']) }, 'What changed last')),
    el('form', { class: 'filters', role: 'search', submit: (event) => event.preventDefault() },
      el('label', { class: 'wide' }, 'Search packages', input), selects.map(({ node }) => node)),
    count, results,
  ];
}

async function viewChanges({ parts: [, catalog], signal }) {
  const { packages, complete } = await json(catalogPath(catalog, 'changes'), signal);
  const named = ({ name }) => el('a', { href: href(['c', catalog, 'p', name]) }, brief(name));
  const bundles = (items) => commas(list(items).slice(0, 20).map(({ version, name }) => text(version || name)));
  const said = (label, items) => list(items).length > 0 && el('div', {}, `${label}: `, bundles(items));
  const row = (found) => el('li', {}, named(found), found.omitted && ' (too large to compare here)',
    said('New versions', found.bundles?.added), said('Versions that are gone', found.bundles?.removed), said('Versions that changed', found.bundles?.changed));
  const section = (title, items) => list(items).length > 0 &&
    [el('h2', {}, title), el('ul', {}, items.slice(0, CHANGES_MAX).map(title === 'Removed' ? ({ name }) => el('li', {}, text(name)) : row))];
  const sections = [section('Added', packages.added), section('Removed', packages.removed), section('Changed', packages.changed)].filter(Boolean);
  return [
    heading('Last changes of ', brief(catalog)),
    el('p', {}, el('a', { href: href(['c', catalog]) }, 'All packages')),
    sections.length ? sections : el('p', {}, 'Nothing is known of a publication before this one.'),
    complete === false && el('p', { class: 'quiet' }, 'Some packages were too large to compare.'),
  ];
}

async function viewPackage({ parts: [, catalog, , name], query, signal }) {
  const { found, current } = await ofOneState(catalog, signal, async (current, cache) => {
    const found = new Package(name);
    await lines(catalogPath(catalog, `packages/${encodeURIComponent(name)}`), signal, cache, (line) => found.add(line));
    return { found, current };
  });
  const channels = [...found.channels.keys()].sort((one, other) => (other === found.defaultChannel) - (one === found.defaultChannel));
  const asked = query.get('channel');
  const channel = channels.includes(asked) ? asked : channels.includes(found.defaultChannel) ? found.defaultChannel : channels[0];
  const head = found.bundles.get(found.head()) ?? found.bundles.get(found.versions()[0]);
  const csv = head?.csv ?? {};
  const deprecated = found.deprecation('olm.package');
  return [
    el('div', { class: 'title' }, icon(found.icon), heading(brief(csv.displayName || name))),
    el('p', {}, el('a', { href: href(['c', catalog]) }, 'All packages of ', brief(catalog))),
    deprecated !== undefined && el('p', { class: 'warn' }, 'Deprecated: ', text(deprecated, 1000)),
    about(catalog, name, found, head, csv, await providers(catalog, name, head?.required, signal)),
    el('h2', {}, 'Versions'),
    channelForm(catalog, name, found, channels, channel),
    versionTable(found, channels, channel),
    el('h2', {}, 'Way between versions'),
    wayForm(catalog, name, found, channels, query),
    el('h2', {}, 'Take away'),
    takeAway(catalog, name, found, current, channels, channel),
    el('h2', {}, 'Description'),
    markdown(csv.description || found.description),
  ];
}

// Packages that provide the kinds that a package requires, by kind.
async function providers(catalog, name, required, signal) {
  const kinds = new Set(list(required).map(({ kind }) => kind));
  const packages = kinds.size ? await packagesOf(catalog, signal, 'default') : [];
  return new Map([...kinds].map((kind) => [kind, packages.filter((one) => one.name !== name && list(one.kinds).includes(kind))]));
}

function about(catalog, name, found, head, csv, provided) {
  const api = ({ group, version, kind }) => text(`${string(kind)}.${string(version)}.${string(group)}`);
  const toPackage = ({ name: other }) => el('a', { href: href(['c', catalog, 'p', other]) }, brief(other));
  const wanted = (one) => [api(one), provided.get(one.kind).length > 0 && [' (kind of ', commas(provided.get(one.kind).slice(0, 10).map(toPackage)), ')']];
  const needed = ({ packageName, versionRange }) => [toPackage({ name: string(packageName) }), ' ', text(string(versionRange))];
  const modes = list(csv.installModes).filter(({ supported }) => supported === true).map(({ type }) => text(type));
  return facts([
    ['Package', text(name)], ['Provider', csv.provider && text(csv.provider)], ['Capability', csv.capabilities && text(csv.capabilities)],
    ['Links', commas(list(csv.links).map(({ name: label, url }) => link(string(url), string(label))))],
    ['Maintainers', commas(list(csv.maintainers).map(({ name: label, email }) => link(`mailto:${string(email)}`, string(label))))],
    ['Provides', commas(list(head?.provided).slice(0, 200).map(api))], ['Requires', commas(list(head?.required).slice(0, 200).map(wanted))],
    ['Needs packages', commas(list(head?.packages).slice(0, 200).map(needed))],
    ['Install modes', commas(modes)], ['Support', found.lifecycles.length === 0 && 'no data'], ['Kubernetes', csv.minKubeVersion && text(`${csv.minKubeVersion} or newer`)],
  ]);
}

function channelForm(catalog, name, found, channels, channel) {
  const select = el('select', { change: () => { location.hash = href(['c', catalog, 'p', name], { channel: select.value }); } },
    channels.map((one) => el('option', { value: one, selected: one === channel },
      `${escaped(one).slice(0, TEXT_MAX)}${one === found.defaultChannel ? ' (default)' : ''}`)));
  const message = found.deprecation('olm.channel', channel);
  return [el('p', {}, el('label', {}, 'Channel of the picture ', select)), message !== undefined && el('p', { class: 'warn' }, 'Deprecated channel: ', text(message, 1000))];
}

// Returns the mark of an entry of a channel, in words.
function mark(found, entry, isHead) {
  if (!entry) return '';
  const from = [entry.replaces, ...entry.skips].filter(Boolean);
  const label = (bundle) => text(found.version(bundle) || bundle, 40);
  const more = el('button', { type: 'button', class: 'more', click: () => more.replaceWith(...commas(from.slice(2).map(label)).flat(Infinity)) }, `${from.length - 2} more`);
  const parts = [
    isHead && el('span', { class: 'head' }, 'head'), from.length > 0 && ['from ', commas(from.slice(0, 2).map(label))],
    from.length > 2 && more, entry.skipRange && ['range ', text(entry.skipRange, 60)],
  ].filter(Boolean);
  return parts.length ? commas(parts) : 'in';
}

function versionTable(found, channels, channel) {
  const day = new Date().toISOString().slice(0, 10);
  const names = found.versions();
  // By name, because a channel may have 10,000 entries.
  const columns = channels.map((one) => ({ entries: new Map(found.channels.get(one).map((entry) => [entry.name, entry])), heads: new Set(found.heads(one)) }));
  const hasSupport = found.lifecycles.length > 0;
  const header = el('tr', {}, el('th', { scope: 'col' }, 'Version'), hasSupport && [el('th', { scope: 'col' }, 'Support'), el('th', { scope: 'col' }, 'Runs on')],
    channels.map((one) => el('th', { scope: 'col' }, found.deprecation('olm.channel', one) === undefined ? text(one, 40) : el('s', {}, text(one, 40)),
      one === found.defaultChannel && ' (default)')));
  const row = (name) => {
    const message = found.deprecation('olm.bundle', name);
    const version = text(found.version(name) || name, 60);
    const support = hasSupport ? found.support(found.version(name), day) : undefined;
    return el('tr', {}, el('th', { scope: 'row' }, message === undefined ? version : [el('s', {}, version), ' ', text(message, 40)]),
      support && [el('td', {}, text(support.until)), el('td', {}, text(support.on))], columns.map(({ entries, heads }) => el('td', {}, mark(found, entries.get(name), heads.has(name)))));
  };
  const [body, more] = rows(names, row, () => el('tbody', {}));
  const table = el('table', {}, el('thead', {}, header), body);
  const picture = arcs(names.slice(0, ROWS), found.channels.get(channel) ?? []);
  return [el('p', { class: 'quiet' }, 'The newest first, with what each channel leads to them from.'),
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Versions' }, el('div', { class: 'graph' }, table, picture)), more];
}

// Returns the upgrades of a channel as arcs between the rows of the table, which says the same in words.
function arcs(names, entries) {
  const line = 32;
  const at = new Map(names.map((name, index) => [name, (index + 1.5) * line]));
  const paths = entries.flatMap(({ name, replaces, skips }) => [replaces, ...skips].filter((from) => at.has(from) && at.has(name)).map((from) => {
    const [start, end] = [at.get(from), at.get(name)];
    return svg('path', { d: `M4 ${start} C ${Math.min(116, 20 + Math.abs(start - end) / 3)} ${start}, ${Math.min(116, 20 + Math.abs(start - end) / 3)} ${end}, 4 ${end}` });
  }));
  const dots = entries.filter(({ name }) => at.has(name)).map(({ name }) => svg('circle', { cx: 4, cy: at.get(name), r: 3 }));
  return svg('svg', { width: 120, height: (names.length + 1) * line, 'aria-hidden': 'true' }, ...paths, ...dots);
}

function wayForm(catalog, name, found, channels, query) {
  const names = found.versions();
  const select = (field) => el('select', { name: field }, el('option', { value: '' }, 'choose'),
    names.slice(0, 10_000).map((one) => el('option', { value: one, selected: one === query.get(field) }, escaped(found.version(one) || one).slice(0, 60))));
  const [from, to] = ['from', 'to'].map(select);
  const answer = el('div', { role: 'status' });
  const update = () => {
    if (!from.value || !to.value) return answer.replaceChildren();
    const ways = channels.map((channel) => [channel, found.steps(channel, from.value, to.value)]).filter(([, way]) => way);
    ways.sort(([, one], [, other]) => one.length - other.length);
    answer.replaceChildren(ways.length
      ? el('ul', {}, ways.map(([channel, way]) => el('li', {}, text(channel), `, ${way.length - 1} step${way.length === 2 ? '' : 's'}: `,
        way.slice(0, 100).flatMap((step, at) => [at ? ' → ' : '', text(found.version(step) || step, 60)]))))
      : el('p', {}, found.reason(from.value, to.value)));
    const fields = { channel: place().query.get('channel'), from: from.value, to: to.value };
    history.replaceState(null, '', href(['c', catalog, 'p', name], fields));
  };
  from.addEventListener('change', update);
  to.addEventListener('change', update);
  update();
  return [el('form', { class: 'filters', submit: (event) => event.preventDefault() }, el('label', {}, 'From', from), el('label', {}, 'To', to)), answer];
}

function takeAway(catalog, name, found, current, channels, channel) {
  const bundle = found.bundles.get(found.heads(channel)[0]) ?? { name: '', version: '', image: '' };
  const versions = (found.channels.get(channel) ?? []).map(({ name: entry }) => entry).sort((one, other) => found.compare(other, one)).map((one) => found.version(one)).filter(Boolean);
  const range = (label) => {
    const select = el('select', {}, el('option', { value: '' }, 'any'), [...new Set(versions)].slice(0, 10_000).map((one) => el('option', { value: one }, escaped(one).slice(0, 60))));
    return [select, el('label', {}, label, select)];
  };
  const [[least, leastLabel], [most, mostLabel]] = [range('From version'), range('To version')];
  const add = () => setBasket([...basket().filter(([of, one, at]) => of !== catalog || one !== name || at !== channel), [catalog, name, channel, least.value, most.value]]);
  return [
    el('form', { class: 'filters', submit: (event) => { event.preventDefault(); add(); } }, leastLabel, mostLabel,
      el('button', { type: 'submit' }, 'Put channel ', brief(channel, 40), ' into the basket')),
    bundle.image && (isReference(bundle.image) ? copied('image', bundle.image) : el('p', {}, 'Not an image reference: ', text(bundle.image))),
    copied('ClusterExtension', extension(name, channel ?? '', bundle.version)),
    copied('Subscription', subscription(name, channel ?? '', bundle.name, catalog)),
  ];
}

async function viewBasket({ signal }) {
  const items = basket();
  if (!items.length) return [heading('Basket'), el('p', {}, 'Nothing is in the basket. Each package has a form that puts a channel into it.')];
  const catalogs = [...new Set(items.map(([catalog]) => catalog))];
  const images = new Map(await Promise.all(catalogs.map(async (catalog) => [catalog, catalogImage(catalog, await json(catalogPath(catalog, 'current.json'), signal))])));
  const defaults = new Map();
  for (const catalog of catalogs) {
    for (const { name, channel } of await packagesOf(catalog, signal, 'default')) defaults.set(`${catalog}/${name}`, channel);
  }
  const row = (item, at) => el('li', {}, commas([item[0], item[1], item[2], [item[3], item[4]].filter(Boolean).join(' to ') || 'all versions'].map((part) => text(part))), ' ',
    el('button', { type: 'button', click: () => setBasket(items.filter((_, other) => other !== at)) }, 'Remove ', brief(item[1], 40)));
  return [heading('Basket'), el('ul', {}, items.map(row)), copied('ImageSetConfiguration', imageSet(items, images, defaults), 'h2')];
}

// --- The view of the place

const VIEWS = [
  [({ parts }) => parts[0] === 'basket', viewBasket], [({ parts }) => parts[0] === 'c' && parts[2] === 'p' && parts.length === 4, viewPackage],
  [({ parts }) => parts[0] === 'c' && parts[2] === 'changes', viewChanges], [({ parts }) => parts[0] === 'c' && parts.length === 2, viewCatalog],
  [() => true, viewCatalogs],
];

function failed(error) {
  const said = error instanceof Failure || error instanceof TypeError ? error.message : `The answer cannot be used: ${error.message}`;
  return [heading('This did not work'), el('p', { class: 'warn' }, text(said, 1000)), el('button', { type: 'button', click: show }, 'Try again')];
}

let running = new AbortController();

async function show() {
  running.abort();
  const { signal } = (running = new AbortController());
  const main = document.querySelector('main');
  main.setAttribute('aria-busy', 'true');
  const at = { ...place(), signal };
  const view = VIEWS.find(([fits]) => fits(at))[1];
  const nodes = await view(at).catch(failed);
  if (signal.aborted) return;
  main.replaceChildren(...nodes.flat(Infinity).filter((node) => node));
  main.removeAttribute('aria-busy');
  const title = main.querySelector('h1');
  document.title = title.textContent === 'Operator catalogs' ? 'Operator catalogs' : `${title.textContent} – Operator catalogs`;
  const link = document.querySelector('#basket-link');
  link.href = href(['basket']);
  link.textContent = basket().length ? `Basket (${basket().length})` : 'Basket';
  document.querySelector('nav a').href = href([]);
  if (document.activeElement === document.body || !document.activeElement) title.focus();
}

addEventListener('hashchange', show);
show();
