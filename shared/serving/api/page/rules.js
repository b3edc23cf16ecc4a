// The rules of the page: versions, packages, upgrades, search, and the manifests that it writes. They know no document of the browser, so
// that tests run them alone: scripts/lib/page_cases.mjs judges them by the table of cases that also judges the Rust crates.

export const TEXT_MAX = 200; // characters of a text before "more"
export const TEXT_WHOLE = 100_000; // characters of any text
const ICONS = { 'image/svg+xml': 'svg', 'image/png': 'png', 'image/jpeg': 'jpg', 'image/gif': 'gif', 'image/webp': 'webp' }; // endings by media types
const LIFECYCLE = 'io.openshift.operators.lifecycles.v1alpha1';

export const list = (value) => (Array.isArray(value) ? value : []);
export const string = (value) => (typeof value === 'string' ? value : '');

// Shows what a reader would not see: control, direction and other format characters.
export const escaped = (value) =>
  (typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value))
    .slice(0, TEXT_WHOLE)
    .replace(/[\t\n\r]+/g, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);

// --- Versions (semver.org 2.0.0; ranges as OLM reads them)

export function parseVersion(value) {
  const found = /^(0|[1-9]\d{0,14})\.(0|[1-9]\d{0,14})\.(0|[1-9]\d{0,14})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/.exec(value ?? '');
  return found && { numbers: found.slice(1, 4).map(Number), pre: found[4]?.split('.') ?? [] };
}

// Returns the order of two versions that were read.
export function orderOf(a, b) {
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
export function parseRange(range) {
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

// Reads the lines of a package, and keeps what the page shows.
export class Package {
  constructor(name) {
    Object.assign(this, { name, description: '', defaultChannel: '', channels: new Map(), bundles: new Map(), deprecations: [], lifecycles: [], texts: new Map() });
  }

  // Equal texts of many versions are kept once.
  kept(value) {
    const text = string(value);
    if (!this.texts.has(text)) this.texts.set(text, text);
    return this.texts.get(text);
  }

  add(line) {
    const meta = JSON.parse(line);
    if (meta.schema === 'olm.package') {
      this.description = string(meta.description);
      this.defaultChannel = string(meta.defaultChannel);
      this.icon = Object.hasOwn(ICONS, meta.icon?.mediatype ?? '') ? ICONS[meta.icon.mediatype] : '';
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
    const bundle = { name: string(meta.name), image: string(meta.image), version: '', provided: [], required: [], packages: [], hasObjects: false };
    for (const { type, value } of list(meta.properties).filter((property) => property?.value)) {
      if (type === 'olm.package') bundle.version = string(value.version);
      else if (type === 'olm.gvk') bundle.provided.push(value);
      else if (type === 'olm.gvk.required') bundle.required.push(value);
      else if (type === 'olm.package.required') bundle.packages.push(value);
      else if (type === 'olm.csv.metadata') bundle.csv = this.csv(value);
      else if (type === 'olm.bundle.object') bundle.hasObjects = true;
    }
    bundle.parsed = parseVersion(bundle.version);
    this.bundles.set(bundle.name, bundle);
  }

  // Reads the ClusterServiceVersion inside the line of a bundle. Only that of the shown version is read: one can have megabytes.
  addObjects(line) {
    const meta = JSON.parse(line);
    const bundle = this.bundles.get(string(meta.name));
    for (const { type, value } of list(meta.properties)) {
      const document = type === 'olm.bundle.object' && decoded(value?.data);
      if (document?.kind !== 'ClusterServiceVersion' || !document.spec) continue;
      bundle.csv ??= this.csv({ ...document.spec, annotations: document.metadata?.annotations, labels: document.metadata?.labels });
      bundle.permissions = document.spec.install?.spec ?? {};
    }
  }

  csv({ displayName, description, provider, links, maintainers, installModes, minKubeVersion, maturity, keywords, annotations, labels }) {
    const noted = (name) => this.kept(annotations?.[name]);
    return {
      displayName: this.kept(displayName), description: this.kept(description), provider: this.kept(provider?.name), maturity: this.kept(maturity),
      links: list(links).slice(0, 50), maintainers: list(maintainers).slice(0, 50), keywords: list(keywords).slice(0, 50), installModes: list(installModes),
      minKubeVersion: this.kept(minKubeVersion), capabilities: noted('capabilities'), categories: noted('categories'), summary: noted('description'),
      image: noted('containerImage'), repository: noted('repository'), created: noted('createdAt'), support: noted('support'), license: noted('license'),
      namespace: noted('operatorframework.io/suggested-namespace'),
      arches: Object.keys(labels ?? {}).filter((label) => label.startsWith(ARCH) && labels[label] === 'supported').map((label) => label.slice(ARCH.length)).sort(),
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

  // Entries of a channel, the newest first.
  entries(channel) {
    return [...(this.channels.get(channel) ?? [])].sort((one, other) => this.compare(other.name, one.name));
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
    const entries = this.entries(channel);
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

  // Entries to which OLM v0 updates, in its order: from the head along `replaces`, without those that are skipped. Undefined for a channel
  // that it refuses: without one head, or with a circle.
  order(channel) {
    const entries = new Map((this.channels.get(channel) ?? []).map((entry) => [entry.name, entry]));
    const heads = this.heads(channel);
    if (heads.length !== 1) return undefined;
    const skipped = new Set([...entries.values()].flatMap(({ skips }) => skips));
    const chain = new Map();
    for (let at = entries.get(heads[0]); at; at = entries.get(at.replaces)) {
      if (chain.has(at.name)) return undefined;
      chain.set(at.name, at);
    }
    return [...chain.values()].filter(({ name }) => !skipped.has(name));
  }

  // Versions that OLM v0 installs one after the other, with automatic approval. Undefined for a channel that it refuses.
  automatic(channel, from) {
    const order = this.order(channel);
    if (!order) return undefined;
    const way = new Set([from]);
    for (const at of way) {
      const next = order.find((entry) => this.upgrades(entry, at));
      if (next && !way.has(next.name)) way.add(next.name);
    }
    return [...way];
  }

  // Reason for which no channel leads from one version to another.
  reason(from, to) {
    const both = [...this.channels].filter(([, entries]) => [from, to].every((name) => entries.some((entry) => entry.name === name)));
    if (!both.length) return 'No channel has both versions.';
    if (this.compare(from, to) > 0) return 'Upgrades lead to newer versions only.';
    return `No upgrades lead from this version to that one in ${both.map(([name]) => escaped(name).slice(0, TEXT_MAX)).slice(0, 10).join(', ')}.`;
  }

  // Support of a version on a day, by the document of the package if there is exactly one. Undefined without data.
  support(version, day) {
    const parsed = parseVersion(version);
    const minor = parsed && `${parsed.numbers[0]}.${parsed.numbers[1]}`;
    const found = this.lifecycles.length === 1 ? this.lifecycles[0].find((one) => one?.name === minor) : undefined;
    if (!found) return undefined;
    const platform = list(found.platformCompatibility).find(({ name }) => name === 'openshift');
    const on = list(platform?.versions).join(', ');
    const support = supportOn(list(found.phases).map(({ name, startDate: start, endDate: end }) => ({ name, start, end })), day);
    return support || on ? { ...support, on } : undefined;
  }

  // Install modes that a version supports, those first that most people want.
  modes(name) {
    const found = list(this.bundles.get(name)?.csv?.installModes).filter((mode) => mode?.supported === true).map(({ type }) => type);
    return MODES.filter((mode) => found.includes(mode));
  }
}

const ARCH = 'operatorframework.io/arch.';
const MODES = ['AllNamespaces', 'OwnNamespace', 'SingleNamespace', 'MultiNamespace'];

// Returns the JSON document in a text of base64; undefined if it is none.
function decoded(data) {
  try {
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))));
  } catch {
    return undefined;
  }
}

// --- Support

// True for a day of the calendar: the clock goes on from 30 February to 2 March.
const isDay = (day) => /^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);

// Returns the support on a day by the phases of a version: its state, and while it lasts the phase and the last day of all. Undefined without
// phases, and with one whose days cannot be read: it leaves a gap.
export function supportOn(phases, day) {
  if (!list(phases).length || !phases.every(({ name, start, end }) => typeof name === 'string' && isDay(start) && isDay(end))) return undefined;
  const phase = phases.find(({ start, end }) => start <= day && day <= end);
  if (phase) return { state: 'supported', phase: phase.name, until: phases.map(({ end }) => end).sort().at(-1) };
  return { state: phases.some(({ start }) => start > day) ? 'not-yet' : 'self-support' };
}

// --- Days on which the mirror first saw versions

// Returns the day of a bundle; '' if the mirror does not know it: it has the bundle since it began to record days.
export function firstSeen(days, name, bundle) {
  const found = days?.packages?.[name];
  const day = found?.later?.[bundle] ?? found?.since ?? '';
  return day > (days?.since ?? '') ? day : '';
}

// Returns the last day on which a version of a package was new; '' if no day is known.
export function lastSeen(days, name) {
  const found = days?.packages?.[name];
  const last = [found?.since ?? '', ...Object.values(found?.later ?? {})].sort().at(-1);
  return last > (days?.since ?? '') ? last : '';
}

// Returns what came after the mirror began to record days, the newest day first, as [day, packages]. A package is {name, isNew, bundles}: of a
// new one the bundles that came with it are not named.
export function arrivals(days) {
  const since = days?.since ?? '';
  const found = new Map();
  const at = (day, name) => {
    if (!found.has(day)) found.set(day, new Map());
    const packages = found.get(day);
    if (!packages.has(name)) packages.set(name, { name, isNew: false, bundles: [] });
    return packages.get(name);
  };
  for (const [name, { since: first, later }] of Object.entries(days?.packages ?? {})) {
    if (first > since) at(first, name).isNew = true;
    for (const [bundle, day] of Object.entries(later ?? {})) if (day > since) at(day, name).bundles.push(bundle);
  }
  return [...found].sort(([one], [other]) => (one < other ? 1 : -1)).map(([day, packages]) => [day, [...packages.values()]]);
}

// Returns the version in the name of a bundle, as most names have it; else the name.
export const versionIn = (bundle) => /\.v?(\d.*)$/.exec(bundle)?.[1] ?? bundle;

// --- Search, by the rules of the mirror's own (shared/operators/olm/src/search)

const WEIGHTS = [8, 7, 5, 5, 3, 2, 1]; // name, display name, keywords, kinds, provider, summary, description
const KINDS = 3; // number of the last field whose words forgive no typo
const TYPO_CHARS = 4; // shortest term with a typo
export const TERMS_MAX = 10;

// Most words are ASCII, for which the short ways give the same.
const isAscii = (value) => /^[\0-\x7f]*$/.test(value);
const fold = (value) => (isAscii(value) ? value.toLowerCase() : [...value.normalize('NFKD').replace(/\p{M}/gu, '')].map((letter) => letter.toLowerCase()).join(''));
const split = (value) => value.split(isAscii(value) ? /[^A-Za-z0-9]+/ : /[^\p{Alphabetic}\p{N}\p{M}]+/u).filter(Boolean);
export const terms = (value) => split(value).flatMap((word) => (isAscii(word) ? word.toLowerCase() : split(fold(word))));
const words = (value) => split(value).flatMap((word) => [word, ...word.split(isAscii(word) ? /(?<=[^A-Z])(?=[A-Z])/ : /(?<=\P{Uppercase})(?=\p{Uppercase})/u)]).flatMap(terms);
const joined = (value) => fold(value).replace(/[^\p{Alphabetic}\p{N}]/gu, '');
const bytes = (value) => new TextEncoder().encode(value).length;

// True if one letter was changed, added, left out, or swapped with its neighbour.
function isTypo(one, other) {
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  let [left, right] = [one.length, other.length];
  while (left > start && right > start && one[left - 1] === other[right - 1]) [left, right] = [left - 1, right - 1];
  const [a, b] = [one.slice(start, left), other.slice(start, right)];
  if (a.length <= 1 && b.length <= 1) return a !== b;
  return a.length === 2 && b.length === 2 && a[0] === b[1] && a[1] === b[0];
}

// The packages of one catalog. Their words are read when they are first asked for: a list of all packages needs none.
export class SearchIndex {
  constructor(document) {
    const parts = Object.entries({ ...document.packages, ...document.shortened });
    this.packages = parts.map(([name, found]) => ({ ...found, name })).sort((one, other) => (one.name < other.name ? -1 : 1));
    this.read = 0; // packages whose words were read
    this.names = [];
    this.words = new Map(); // of each word its packages, as numbers one after the other: the package, and its best field
  }

  // Reads the words of so many packages more. True if there are others.
  prepare(count = Infinity) {
    for (const until = Math.min(this.packages.length, this.read + count); this.read < until; this.read++) {
      const found = this.packages[this.read];
      this.names.push([joined(found.name), joined(string(found.displayName))]);
      const fields = [
        words(found.name), words(string(found.displayName)), words(list(found.keywords).join(' ')), words(list(found.kinds).join(' ')),
        words(string(found.provider)), words(string(found.summary)), string(found.words).split(' '),
      ];
      fields.forEach((all, field) => all.forEach((word) => { if (word) this.addWord(word, field); }));
    }
    return this.read < this.packages.length;
  }

  addWord(word, field) {
    const postings = this.words.get(word);
    if (!postings) this.words.set(word, [this.read, field]);
    else if (postings[postings.length - 2] !== this.read) postings.push(this.read, field);
  }

  // Packages that match, the best first, as [package, score].
  find(query) {
    const asked = terms(query).slice(0, TERMS_MAX);
    if (!asked.length) return this.packages.map((found) => [found, 0]);
    this.prepare();
    let scores = new Map(this.packages.map((_, at) => [at, 0]));
    for (const term of asked) {
      const found = this.matches(term);
      const rarity = Math.log(1 + this.packages.length / Math.max(found.size, 1));
      scores = new Map([...found].filter(([at]) => scores.has(at)).map(([at, points]) => [at, points * rarity + scores.get(at)]));
    }
    const whole = joined(query);
    const length = (at) => this.names[at][0].length;
    const scored = [...scores].map(([at, points]) => [at, points + (this.names[at].includes(whole) ? 100 : 0)]);
    scored.sort(([one, a], [other, b]) => b - a || length(one) - length(other) || one - other);
    return scored.map(([at, points]) => [this.packages[at], points]);
  }

  // Packages that are like a name that is not there: those that have its words, else those that have one of them.
  like(name) {
    const found = this.find(name);
    const each = found.length ? [found] : terms(name).sort((one, other) => other.length - one.length).map((term) => this.find(term));
    return (each.find((hits) => hits.length) ?? []).map(([one]) => one);
  }

  // Points of the packages that have a term. Typos count if no name, keyword or kind starts with it: descriptions have typos of their own.
  matches(term) {
    const found = new Map();
    const add = (quality, postings) => {
      for (let at = 0; at < postings.length; at += 2) found.set(postings[at], Math.max(found.get(postings[at]) ?? 0, quality * WEIGHTS[postings[at + 1]]));
    };
    let isKnown = false;
    for (const [word, postings] of this.words) {
      if (!word.startsWith(term)) continue;
      for (let at = 1; at < postings.length && !isKnown; at += 2) isKnown = postings[at] <= KINDS;
      add(word === term ? 1 : 0.6 + 0.3 * (bytes(term) / bytes(word)), postings);
    }
    if (!isKnown && [...term].length >= TYPO_CHARS) for (const [word, postings] of this.words) if (isTypo(term, word)) add(0.4, postings);
    return found;
  }
}

// --- Manifests. Each foreign value is quoted: a JSON text is a double-quoted scalar of YAML.

const quote = (value) => String(JSON.stringify(value)).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (letter) => {
  const code = letter.codePointAt(0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
});

// People paste a reference into a shell, which would run another text.
export const isReference = (image) => /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/.test(image);

// OLM v1 takes names of channels that are subdomains of DNS (RFC 1123). For another one, such as Stable, the version alone selects.
const isSubdomain = (name) => name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);

// Returns a name for a namespace and for objects: a label of DNS.
const label = (name) => name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 50).replace(/-+$/, '') || 'operator';

// Returns the end of the names of the CatalogSource and of the ClusterCatalog, as `manifests` and `carry` make them: repository and tag.
export function manifestSuffix(catalog, source) {
  const input = /^compose:(.*)#[^#]*$/s.exec(source)?.[1];
  const isImage = input?.includes('/') && !input.includes(',') && !input.includes('@');
  const tag = (isImage && /:([^:/]*)$/.exec(input)?.[1]) || 'latest';
  const ending = `-${tag.toLowerCase().replace(/[._]/g, '-')}`;
  const isTagged = catalog.length > ending.length && catalog.endsWith(ending);
  const repository = isTagged ? catalog.slice(0, -ending.length) : catalog;
  const short = (isTagged ? tag : 'latest').slice(0, 12).toLowerCase().replace(/[^a-z0-9]/g, '-').replace(/-+$/, '');
  return `${repository}-${short}`.replaceAll('.', '-');
}

const document = (kind, api, name, namespace, ...rest) => [
  `apiVersion: ${api}`, `kind: ${kind}`, 'metadata:', `  name: ${quote(name)}`, ...(namespace ? [`  namespace: ${quote(namespace)}`] : []), ...rest, '',
].join('\n');

// Returns what installs a version by OLM v0. `mode` is an install mode that it supports.
export function subscription({ found, channel, bundle, suffix, mode, sourceNamespace, isHead }) {
  const namespace = label(bundle.csv?.namespace || found.name);
  const watched = { OwnNamespace: [namespace], SingleNamespace: [`${namespace}-watched`], MultiNamespace: [`${namespace}-watched-1`, `${namespace}-watched-2`] }[mode] ?? [];
  const spaces = [...new Set([namespace, ...watched])].map((name) => document('Namespace', 'v1', name));
  const targets = watched.length ? ['spec:', '  targetNamespaces:', ...watched.map((name) => `    - ${quote(name)}`)] : ['spec: {}'];
  return [
    ...spaces,
    document('OperatorGroup', 'operators.coreos.com/v1', namespace, namespace, ...targets),
    document('Subscription', 'operators.coreos.com/v1alpha1', label(found.name), namespace, 'spec:', `  name: ${quote(found.name)}`, `  channel: ${quote(channel)}`,
      `  source: ${quote(`cs-${suffix}`)}`, `  sourceNamespace: ${quote(sourceNamespace)}`, `  startingCSV: ${quote(bundle.name)}`,
      ...(isHead ? ['  installPlanApproval: Automatic'] : ['  # Approve the first InstallPlan. With Automatic, OLM would go on to the newest version.', '  installPlanApproval: Manual'])),
  ].join('---\n');
}

const ALL = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];

// Returns the rules of RBAC that an installer needs, and whether they are those of the bundle. Without the content of the bundle its account
// may grant what it does not have itself.
function installerRules(name, permissions) {
  const granted = permissions && [...list(permissions.clusterPermissions), ...list(permissions.permissions)].flatMap(({ rules }) => list(rules));
  const grant = granted ? ALL : [...ALL, 'bind', 'escalate'];
  return [
    { apiGroups: ['olm.operatorframework.io'], resources: ['clusterextensions/finalizers'], resourceNames: [name], verbs: ['update'] },
    { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ALL },
    { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterrolebindings', 'clusterroles', 'rolebindings', 'roles'], verbs: grant },
    { apiGroups: [''], resources: ['configmaps', 'secrets', 'serviceaccounts', 'services'], verbs: ALL },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ALL },
    { apiGroups: ['admissionregistration.k8s.io'], resources: ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'], verbs: ALL },
    { apiGroups: ['cert-manager.io'], resources: ['certificates', 'issuers'], verbs: ALL },
    ...(granted ?? []).map(({ apiGroups, resources, resourceNames, nonResourceURLs, verbs }) => ({ apiGroups, resources, resourceNames, nonResourceURLs, verbs })),
  ];
}

// Returns what installs a version by OLM v1.
export function extension({ found, channel, bundle, suffix }) {
  const name = label(found.name);
  const namespace = label(bundle.csv?.namespace || found.name);
  const account = `${name}-installer`;
  const fields = (rule) => Object.entries(rule).filter(([, values]) => values !== undefined).map(([key, values]) => `${key}: ${quote(values)}`);
  const rules = installerRules(name, bundle.permissions).map((rule) => `  - ${fields(rule).join('\n    ')}`);
  return [
    document('Namespace', 'v1', namespace),
    document('ServiceAccount', 'v1', account, namespace),
    (bundle.permissions ? '' : '# The catalog does not hold the permissions of this operator, so its installer may grant any (bind, escalate).\n') +
      document('ClusterRole', 'rbac.authorization.k8s.io/v1', account, '', 'rules:', ...rules),
    document('ClusterRoleBinding', 'rbac.authorization.k8s.io/v1', account, '', 'roleRef:', '  apiGroup: rbac.authorization.k8s.io', '  kind: ClusterRole',
      `  name: ${quote(account)}`, 'subjects:', '  - kind: ServiceAccount', `    name: ${quote(account)}`, `    namespace: ${quote(namespace)}`),
    document('ClusterExtension', 'olm.operatorframework.io/v1', name, '', 'spec:', `  namespace: ${quote(namespace)}`, '  serviceAccount:', `    name: ${quote(account)}`,
      '  source:', '    sourceType: Catalog', '    catalog:', `      packageName: ${quote(found.name)}`,
      ...(isSubdomain(channel) ? [`      channels: [${quote(channel)}]`] : []), `      version: ${quote(bundle.version)}`,
      '      selector:', '        matchLabels:', `          olm.operatorframework.io/metadata.name: ${quote(`cc-${suffix}`)}`),
  ].join('---\n');
}

// Returns the image of a catalog: its source as it is configured, or the mirror's own. Pinned, it is the one that is published now.
export function catalogImage(host, catalog, { source, image }, isPinned) {
  const isImage = /^sha256:[0-9a-f]{64}$/.test(source?.revision) && !/^(dir|oci|git|compose|https?|archive|catalog)[:+]/.test(source.ref);
  const configured = isImage ? source.ref.replace(/^docker:\/\//, '') : `${host}/${catalog}:latest`;
  const digest = isImage ? source.revision : `sha256:${string(image?.key).split('/').at(-1)}`;
  if (!isPinned || configured.includes('@')) return { catalog: configured };
  const [, name, tag] = /^(.*?)(?::([^:/]*))?$/.exec(configured);
  return { catalog: `${name}@${digest}`, targetTag: tag || 'latest' };
}

// Returns the ImageSetConfiguration of oc-mirror v2 for the items of a basket: [catalog, package, channel, least version, most version].
export function imageSet(items, images, defaults) {
  const out = ['apiVersion: mirror.openshift.io/v2alpha1', 'kind: ImageSetConfiguration', 'mirror:', '  operators:'];
  for (const catalog of new Set(items.map(([of]) => of))) {
    const image = images.get(catalog);
    out.push(`    - catalog: ${quote(image.catalog)}`);
    // A digest has no tag, from which names of manifests are made.
    if (image.targetTag) out.push(`      targetTag: ${quote(image.targetTag)}`);
    out.push('      packages:');
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
