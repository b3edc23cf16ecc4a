// The page of a mirror. It reads the mirror's documents by relative URLs, so it works below any path. Catalogs are foreign input:
// their texts become nodes and never HTML, which the policy of the page also forbids to the browser.

import {
  Package, SearchIndex, TEXT_MAX, TEXT_WHOLE, arrivals, catalogImage, escaped, extension, firstSeen, imageSet, isReference, lastSeen, list, manifestSuffix, string, subscription,
  supportOn, terms, versionIn,
} from './rules.js';

// --- Limits

const ROWS = 40; // rows of a list before "more"
const GRAPH_ROWS = 300; // versions of a channel before "more"
const LANES = 6; // lines beside each other in a graph
const PREPARED = 50; // packages whose words are read at a time
const PICKS = 24; // versions to pick from
const DAYS = 14; // days of a list of changes before "more"
const OPTIONS_MAX = 10_000; // versions in a select
const VALUES = 8; // values of a facet before "more"
const SKELETON_MS = 100; // time before a view that is not ready shows that it comes
const LEVELS = ['Basic Install', 'Seamless Upgrades', 'Full Lifecycle', 'Deep Insights', 'Auto Pilot'];

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
  return label && !label.startsWith(host) ? [anchor, ' ', el('small', {}, `(${escaped(host).slice(0, TEXT_MAX)})`)] : anchor;
}

// Returns the letter that stands for a package without an icon.
const letter = (name) => el('span', { class: 'icon', 'aria-hidden': 'true' }, /[\p{L}\p{N}]/u.exec(escaped(name))?.[0].toUpperCase() ?? '');

// Loads icons as they come into view. What browsers call lazy loads some screens ahead.
const inView = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) { inView.unobserve(target); target.src = target.dataset.source; }
});

function picture(name, source) {
  const image = el('img', { class: 'icon', 'data-source': source, alt: '', decoding: 'async' });
  image.addEventListener('error', () => image.replaceWith(letter(name)));
  inView.observe(image);
  return image;
}

// Returns the icon of a package, which the mirror has if browsers can show it. `ending` is that of its file.
function icon(catalog, name, label, ending) {
  return ending ? picture(label, catalogPath(catalog, `icons/${encodeURIComponent(name)}.${encodeURIComponent(ending)}`)) : letter(label);
}

const facts = (rows) =>
  el('dl', { class: 'facts' }, rows.filter(([, value]) => value && value.length !== 0).map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));

// Returns items with commas between them.
const commas = (items) => items.flatMap((item, at) => (at ? [', ', item] : [item]));

const plural = (count, one) => `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`;

// Returns a list of which some rows are shown at first. A place that is returned to has as many rows as it had.
function rows(items, row, make, first = ROWS) {
  const node = make();
  let shown = 0;
  const more = el('button', { type: 'button', class: 'wide', click: () => { show(shown + 5 * first); remember({ rows: shown }); } });
  const show = (until) => {
    node.append(...items.slice(shown, until).map((item, at) => row(item, shown + at)).flat());
    shown = Math.min(until, items.length);
    more.textContent = `Show more (${(items.length - shown).toLocaleString('en')} left)`;
    more.hidden = shown === items.length;
  };
  show(Math.max(first, history.state?.rows ?? 0));
  return [node, more];
}

// Returns a select with a label. `options` are [value, label].
function choice(label, name, options, value, change) {
  const select = el('select', { name, change: () => change(select.value) },
    options.map(([option, said]) => el('option', { value: option, selected: option === value }, escaped(said).slice(0, 80))));
  return el('label', {}, el('span', {}, label), select);
}

function copyButton(label, content) {
  const button = el('button', { type: 'button', click: async () => {
    try {
      await navigator.clipboard.writeText(content);
      said.textContent = 'Copied';
    } catch {
      said.textContent = 'The browser does not allow it: select the text';
    }
  } }, label);
  const said = el('span', { role: 'status', class: 'quiet' });
  return [button, said];
}

// Returns a file to copy or to download.
function fileOf(title, name, content, level = 'h3') {
  const download = el('a', { class: 'button', href: URL.createObjectURL(new Blob([content], { type: 'application/yaml' })), download: name }, 'Download');
  return el('section', { class: 'file', 'aria-label': title },
    el('div', { class: 'file-head' }, el(level, {}, title), el('div', { class: 'buttons' }, copyButton('Copy', content), download)),
    el('pre', { tabindex: '0' }, el('code', {}, content)));
}

const command = (content) => el('div', { class: 'command' }, el('pre', { tabindex: '0' }, el('code', {}, content)), copyButton('Copy', content));

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
    else if (strong || bold) nodes.push(el('strong', {}, inline(strong || bold)));
    else if (emphasis) nodes.push(el('em', {}, inline(emphasis)));
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
    while (lines.length && lines.at(-1).trim() && !/^\s{0,3}(#{1,6}\s|```)/.test(lines.at(-1))) {
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

// --- Places: `#/c/CATALOG/p/PACKAGE/TAB?channel=NAME`

function place() {
  const [path, query] = location.hash.slice(1).split('?');
  const decode = (part) => { try { return decodeURIComponent(part); } catch { return part; } };
  return { parts: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function href(parts, fields = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(fields)) for (const one of [value].flat()) if (value) query.append(key, one);
  return `#/${parts.map(encodeURIComponent).join('/')}${query.size ? `?${query}` : ''}`;
}

// Keeps something beside the place in the history, for when it is returned to.
function remember(fields) {
  history.replaceState({ ...history.state, ...fields }, '');
}

let writing;

// Writes the address of what is typed, after a pause: browsers refuse too many changes.
function address(parts, fields) {
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState({}, '', href(parts, fields)), 150);
}

// --- The basket: [catalog, package, channel, least version, most version]. This browser keeps it, and the address of its view shares it.

let held = [];

function readItems(items) {
  const parsed = list(items).map((item) => { try { return JSON.parse(item); } catch { return undefined; } });
  return parsed.filter((item) => Array.isArray(item) && item.length === 5 && item.every((part) => typeof part === 'string'));
}

function basket() {
  try {
    return readItems(JSON.parse(localStorage.getItem('basket')));
  } catch {
    return held;
  }
}

function setBasket(items) {
  held = items;
  try {
    localStorage.setItem('basket', JSON.stringify(items.map((item) => JSON.stringify(item))));
  } catch {
    // Without storage the basket lasts as long as the page.
  }
  showBasketLink();
}

const basketPlace = (items) => href(['basket'], { b: items.map((item) => JSON.stringify(item)) });

function showBasketLink() {
  const items = basket();
  const link = document.querySelector('#basket-link');
  link.href = basketPlace(items);
  link.textContent = items.length ? `Basket (${items.length})` : 'Basket';
}

// --- Parts of views

const heading = (...children) => el('h1', { tabindex: '-1' }, children);

function age(value) {
  const then = new Date(value);
  if (Number.isNaN(then.getTime())) return text(value);
  const minutes = Math.max(0, Math.round((Date.now() - then) / 60_000));
  const [count, unit] = minutes < 120 ? [minutes, 'minute'] : minutes < 2880 ? [Math.round(minutes / 60), 'hour'] : [Math.round(minutes / 1440), 'day'];
  return el('time', { datetime: then.toISOString(), title: then.toISOString() }, minutes < 1 ? 'just now' : `${plural(count, unit)} ago`);
}

const dayNode = (day) => el('time', { datetime: day }, day);
const today = () => new Date().toISOString().slice(0, 10);
const mark = (kind, ...said) => el('span', { class: `mark ${kind}` }, said);

// Returns the support of a version as a mark; nothing without data. `support` is that of rules.js.
function supportMark(support) {
  if (!support?.state) return [];
  if (support.state !== 'supported') return mark('warn', support.state === 'not-yet' ? 'Not supported yet' : 'Support ended');
  return mark('good', 'Supported until ', dayNode(support.until));
}

// Returns the way to a place: [label, parts], the last one without a link.
const crumbs = (...steps) => el('nav', { 'aria-label': 'Breadcrumb', class: 'crumbs' }, el('ol', {},
  [['Catalogs', []], ...steps].map(([label, parts]) => el('li', {}, parts ? el('a', { href: href(parts) }, brief(label, 60)) : el('span', { 'aria-current': 'page' }, brief(label, 60))))));

const tabs = (label, items) => el('nav', { 'aria-label': label, class: 'tabs' }, items.map(([name, target, isCurrent]) => el('a', { href: target, 'aria-current': isCurrent && 'page' }, name)));

const listedIcon = (catalog, { name, displayName, icon: ending }) => icon(catalog, name, displayName || name, ending);

// Returns one package of a list. `catalog` is said if several are searched.
function packageRow(catalog, found, days, isCatalogSaid) {
  const { name, displayName, summary, version, channel, provider, deprecated, support } = found;
  const day = lastSeen(days, name);
  return el('li', { class: 'card' }, listedIcon(catalog, found),
    el('div', { class: 'card-body' },
      el('div', { class: 'card-title' },
        el('a', { href: href(['c', catalog, 'p', name]) }, brief(displayName || name)), el('small', {}, brief(name, 80)), deprecated && mark('warn', 'Deprecated'), supportMark(supportOn(support, today()))),
      el('p', { class: 'summary' }, brief(summary, 400)),
      el('small', {}, [provider && brief(provider, 80), isCatalogSaid && brief(catalog)].filter(Boolean).flatMap((part, at) => (at ? [' · ', part] : [part])))),
    el('div', { class: 'card-side' }, version && el('strong', {}, brief(version, 40)), channel && el('small', {}, brief(channel, 40)), day && el('small', {}, dayNode(day))));
}

// Returns a field for a search, which `/` goes to.
const searchField = (label, value, input) => el('label', { class: 'search' }, el('span', { class: 'hidden' }, label),
  el('input', { type: 'search', name: 'q', value, placeholder: label, autocomplete: 'off', spellcheck: 'false', 'aria-keyshortcuts': '/', input }), el('kbd', { 'aria-hidden': 'true' }, '/'));

// --- Catalogs

// An unavailable catalog, or one without such a document, is absent.
const absent = (error) => { if (error.status === 404) return undefined; throw error; };

// Returns a source, or an error about one, without the folders in which it lies on the server.
const shown = (ref) => string(ref).replace(/^(dir|oci):.*\//s, '$1:').replace(/(^|[\s"'`:])\/(?:[^\s"'`:/]+\/)+/g, '$1');

// Packages of a catalog; of one from before search existed, their names.
async function indexOf(catalog, signal, cache) {
  const found = await json(catalogPath(catalog, 'search.json'), signal, cache).catch(absent);
  if (found) return new SearchIndex(found);
  const { packages } = await json(catalogPath(catalog, 'packages'), signal, cache);
  return new SearchIndex({ packages: Object.fromEntries(list(packages).map(({ name }) => [name, {}])) });
}

const statusOf = (catalog, signal) => json(catalogPath(catalog, 'status.json'), signal).catch(() => ({}));
const daysOf = (catalog, signal, cache) => json(catalogPath(catalog, 'days.json'), signal, cache).catch(() => undefined);

async function viewCatalogs({ query, signal }) {
  const { catalogs } = await json('catalogs.json', signal);
  const names = list(catalogs).filter((name) => typeof name === 'string');
  const found = await Promise.all(names.map(async (name) => ({
    name,
    current: await json(catalogPath(name, 'current.json'), signal).catch(absent),
    status: await statusOf(name, signal),
  })));
  const published = found.filter(({ current }) => current);
  const field = searchField('Search all catalogs', query.get('q') ?? '', () => update());
  const input = field.querySelector('input');
  const results = el('div', {});
  const count = el('p', { role: 'status', class: 'quiet' });
  const table = catalogTable(published);
  const indexes = new Map();
  const loaded = async () => {
    await Promise.all(published.map(async ({ name }) => { if (!indexes.has(name)) indexes.set(name, [await indexOf(name, signal), await daysOf(name, signal)]); }));
  };
  const update = async () => {
    const asked = input.value;
    address([], { q: asked });
    table.hidden = terms(asked).length > 0;
    if (!table.hidden) { results.replaceChildren(); count.textContent = ''; return; }
    if (indexes.size < published.length) count.textContent = 'Loading the catalogs…';
    await loaded();
    if (signal.aborted || asked !== input.value) return;
    const hits = [...indexes].flatMap(([name, [index, days]]) => index.find(asked).map(([one, points]) => ({ name, days, one, points }))).sort((a, b) => b.points - a.points);
    count.textContent = `${plural(hits.length, 'package')} in ${plural(new Set(hits.map(({ name }) => name)).size, 'catalog')}`;
    results.replaceChildren(...(hits.length ? rows(hits, ({ name, days, one }) => packageRow(name, one, days, true), () => el('ul', { class: 'cards' })) : nothing(asked, false)));
  };
  input.addEventListener('focus', () => loaded().catch(() => {}));
  if (input.value) await update();
  return [
    el('div', { class: 'hero' }, heading('Operator catalogs'),
      el('p', {}, `Find operators, compare their versions, plan upgrades and install them. ${plural(published.reduce((sum, { current }) => sum + (Number(current.packages) || 0), 0), 'package')} in ${plural(published.length, 'catalog')}.`),
      el('form', { role: 'search', submit: (event) => event.preventDefault() }, field)),
    count, results,
    published.length ? table : el('p', {}, 'No catalog is published yet. The first one appears here when its poll has ended.'),
  ];
}

// Returns the state of the last poll in a word.
function pollState({ lastPoll, error, rejected, failures }) {
  if (!lastPoll) return '';
  if (rejected?.held) return [mark('warn', 'Held back'), ' since ', age(rejected.held.since)];
  if (rejected) return [mark('warn', 'Refused'), ' ', age(lastPoll)];
  if (error || failures > 0) return [mark('bad', 'Failing'), ' ', age(lastPoll)];
  return [mark('good', 'Up to date'), ' ', age(lastPoll)];
}

// Returns the place of a ring: the state that it has, and when the next one is old enough.
function ringPlace(source, nextAt) {
  const ring = source?.ring;
  if (!ring) return undefined;
  const at = ring.at ? [', its state of ', age(ring.at.publishedAt)] : [', no state yet'];
  const next = nextAt ? [', the next until ', el('time', { datetime: escaped(nextAt) }, escaped(nextAt).slice(0, 16).replace('T', ' '))] : [];
  return el('span', {}, brief(ring.of), at, `; ${plural(list(ring.waiting).length, 'state')} waiting`, next);
}

const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

// Returns what keeps newer content from a catalog; nothing if it is up to date.
function problemOf(catalog, { error, rejected, lastSuccess }) {
  if (!error && !rejected) return undefined;
  return el('div', { class: 'note warn' },
    el('p', {}, el('strong', {}, rejected?.held ? 'Newer content is held back. ' : rejected ? 'Newer content is refused. ' : 'The last poll failed. '),
      lastSuccess && ['The catalog is that of ', age(lastSuccess), '.']),
    el('p', {}, text(sentence(shown(rejected?.error || error)), 240)));
}

function catalogTable(published) {
  const row = ({ name, current, status }) => {
    const details = el('details', {}, el('summary', {}, 'Details'), facts([
      ['Source', text(shown(current.source?.ref))], ['Digest', text(current.source?.revision)], ['Size', `${(current.size / 1e6).toFixed(1)} MB`],
      ['Publication', String(current.serial)], ['Follows', ringPlace(current.source, status.nextAt)],
    ]), problemOf(name, status));
    return el('li', { class: 'row' },
      el('h2', {}, el('a', { href: href(['c', name]) }, brief(name))),
      el('span', {}, plural(Number(current.packages) || 0, 'package')),
      el('span', {}, 'Published ', age(current.publishedAt)),
      el('span', { class: 'state' }, pollState(status)), details);
  };
  return el('div', {}, rows(published, row, () => el('ul', { class: 'catalogs' })));
}

// --- A catalog: search, facets, order

const FACETS = [['category', 'Category', 'categories'], ['provider', 'Provider', 'provider'], ['capability', 'Capability', 'capability'], ['arch', 'CPU', 'arches']];
const ORDERS = [['', 'Best match'], ['name', 'Name'], ['newest', 'Newest']];
const valuesOf = (found, field) => (Array.isArray(found[field]) ? found[field] : found[field] ? [found[field]] : []);

function nothing(asked, isFiltered) {
  return [el('div', { class: 'empty' }, el('p', {}, el('strong', {}, 'No package matches.')),
    el('ul', {}, isFiltered && el('li', {}, 'Remove a filter.'), terms(asked).length > 1 && el('li', {}, 'Use fewer words: a package must have all of them.'),
      el('li', {}, 'Search for a kind, such as Kafka or Certificate, or for a provider.'),
      isFiltered !== false && el('li', {}, el('a', { href: '#/' }, 'Search all catalogs'))))];
}

async function viewCatalog({ parts: [, catalog], query, signal }) {
  const { index, days, current, status } = await ofOneState(catalog, signal, async (current, cache) => {
    const [index, days, status] = await Promise.all([indexOf(catalog, signal, cache), daysOf(catalog, signal, cache), statusOf(catalog, signal)]);
    return { index, days, current, status };
  });
  const chosen = new Map(FACETS.map(([name]) => [name, new Set(query.getAll(name))]));
  const open = new Set();
  let order = ORDERS.some(([name]) => name === query.get('sort')) ? query.get('sort') : '';
  const field = searchField(`Search ${catalog}`, query.get('q') ?? '', () => update());
  const input = field.querySelector('input');
  const [count, results, filters] = [el('p', { role: 'status' }), el('div', {}), el('div', { class: 'filters' })];
  const summary = el('summary', {}, 'Filters');
  const fits = (found, without) => FACETS.every(([name, , field]) => name === without || !chosen.get(name).size || valuesOf(found, field).some((value) => chosen.get(name).has(value)));

  // The numbers of a facet count what its other values would give.
  const facet = ([name, label, field], hits) => {
    const counts = new Map([...chosen.get(name)].map((value) => [value, 0]));
    for (const value of hits.filter((found) => fits(found, name)).flatMap((found) => valuesOf(found, field))) counts.set(value, (counts.get(value) ?? 0) + 1);
    const sorted = [...counts].sort(([one, a], [other, b]) => chosen.get(name).has(other) - chosen.get(name).has(one) || b - a || one.localeCompare(other, 'en', { sensitivity: 'base' }));
    if (!sorted.length) return [];
    const most = open.has(name) ? 500 : Math.max(VALUES, chosen.get(name).size);
    const box = ([value, number]) => el('label', { class: 'check' },
      el('input', { type: 'checkbox', name, value, checked: chosen.get(name).has(value), change: (event) => { event.target.checked ? chosen.get(name).add(value) : chosen.get(name).delete(value); update(); } }),
      el('span', {}, brief(value, 60)), el('small', {}, number.toLocaleString('en')));
    return el('fieldset', {}, el('legend', {}, label), sorted.slice(0, most).map(box),
      sorted.length > VALUES && el('button', { type: 'button', class: 'link', name: `more-${name}`, click: () => { open.has(name) ? open.delete(name) : open.add(name); update(); } },
        open.has(name) ? 'Show fewer' : `Show all ${sorted.length}`));
  };

  const update = () => {
    const hits = index.find(input.value).map(([found]) => found);
    const fitting = hits.filter((found) => fits(found));
    const byName = (one, other) => (one.displayName || one.name).localeCompare(other.displayName || other.name, 'en', { sensitivity: 'base', ignorePunctuation: true });
    const isAsked = terms(input.value).length > 0;
    if (order === 'newest') fitting.sort((one, other) => (lastSeen(days, other.name) > lastSeen(days, one.name) ? 1 : lastSeen(days, other.name) < lastSeen(days, one.name) ? -1 : byName(one, other)));
    else if (order === 'name' || !isAsked) fitting.sort(byName);
    const number = [...chosen.values()].reduce((sum, { size }) => sum + size, 0);
    count.textContent = fitting.length === index.packages.length ? plural(fitting.length, 'package') : `${fitting.length.toLocaleString('en')} of ${plural(index.packages.length, 'package')}`;
    summary.textContent = number ? `Filters (${number})` : 'Filters';
    results.replaceChildren(...(fitting.length ? rows(fitting, (found) => packageRow(catalog, found, days), () => el('ul', { class: 'cards' })) : nothing(input.value, number > 0)));
    const clear = number > 0 && el('button', { type: 'button', name: 'clear', click: () => { for (const values of chosen.values()) values.clear(); update(); } }, 'Clear filters');
    keepFocus(filters, () => filters.replaceChildren(...[clear, ...FACETS.map((one) => facet(one, hits))].flat().filter(Boolean)));
    address(['c', catalog], { q: input.value, sort: order, ...Object.fromEntries([...chosen].map(([name, values]) => [name, [...values]])) });
  };
  const state = history.state;
  update();
  if (state) remember(state);
  prepareLater(index, signal);
  const side = el('details', { class: 'side', open: matchMedia('(min-width: 60rem)').matches }, summary, filters);
  return [
    crumbs([catalog]),
    el('div', { class: 'title' }, el('div', {}, heading(brief(catalog)), el('p', { class: 'quiet' }, `${plural(index.packages.length, 'package')}, published `, age(current.publishedAt), current.source?.ring && ['. Follows ', ringPlace(current.source, status.nextAt), '.']), problemOf(catalog, status))),
    tabs('Catalog', [['Packages', href(['c', catalog]), true], ['Changes', href(['c', catalog, 'changes']), false]]),
    el('form', { role: 'search', submit: (event) => event.preventDefault() }, el('div', { class: 'browse' },
      side, el('div', {}, field, el('div', { class: 'over' }, count, choice('Sort by', 'sort', ORDERS, order, (value) => { order = value; update(); })), results))),
  ];
}

// Reads the words of a catalog bit by bit while nothing else is done, so that the first key finds them.
function prepareLater(index, signal) {
  const step = () => { if (!signal.aborted && index.prepare(PREPARED)) setTimeout(step); };
  setTimeout(step, 200);
}

// Keeps the focus on the control with the same name and value while a part is made anew.
function keepFocus(part, make) {
  const { name, value } = part.contains(document.activeElement) ? document.activeElement : {};
  make();
  if (name) [...part.querySelectorAll('input, button')].find((node) => node.name === name && node.value === value)?.focus({ preventScroll: true });
}

async function viewChanges({ parts: [, catalog], signal }) {
  const [changes, current, index, days] = await Promise.all([json(catalogPath(catalog, 'changes'), signal).catch(absent), json(catalogPath(catalog, 'current.json'), signal),
    indexOf(catalog, signal, 'default'), daysOf(catalog, signal)]);
  const known = new Map(index.packages.map((found) => [found.name, found]));
  const { packages, complete, from, to } = changes ?? { packages: {} };
  const versions = (items) => commas(list(items).slice(0, 20).map(({ version, name }) => text(version || name)));
  const said = (label, items) => list(items).length > 0 && el('div', {}, el('small', {}, `${label} `), versions(items), list(items).length > 20 && ` and ${items.length - 20} more`);
  const changed = (one, state) => changeRow(catalog, known, one.name, state, [one.omitted && el('small', {}, 'too large to compare here'),
    said('New', one.bundles?.added), said('Removed', one.bundles?.removed), said('Changed in place', one.bundles?.changed), !one.omitted && !versionsOf(one).length && el('small', {}, changedParts(one))]);
  const all = [...list(packages.added).map((one) => changed(one, mark('good', 'New package'))), ...list(packages.removed).map((one) => changed(one, mark('bad', 'Removed'))), ...list(packages.changed).map((one) => changed(one))];
  const arrived = arrivals(days);
  const ofDay = ([day, came]) => section(dayNode(day), rows(came, ({ name, isNew, bundles }) =>
    changeRow(catalog, known, name, isNew && mark('good', 'New package'), [bundles.length > 0 && commas(bundles.sort().reverse().slice(0, 20).map((one) => text(versionIn(one), 60)))]), () => el('ul', { class: 'cards' })));
  return [
    crumbs([catalog, ['c', catalog]], ['Changes']),
    el('div', { class: 'title' }, el('div', {}, heading('Changes of ', brief(catalog)), el('p', { class: 'quiet' }, `${plural(Number(current.packages) || 0, 'package')}, published `, age(current.publishedAt)))),
    tabs('Catalog', [['Packages', href(['c', catalog]), false], ['Changes', href(['c', catalog, 'changes']), true]]),
    el('h2', { class: 'first' }, 'The last publication', all.length > 0 && el('small', {}, ` ${plural(all.length, 'package')}`)),
    all.length > 0 && from && el('p', { class: 'quiet' }, 'From content ', el('code', {}, escaped(from).slice(0, 12)), ' to ', el('code', {}, escaped(to).slice(0, 12)), ', ', age(current.publishedAt), '.'),
    all.length ? rows(all, (node) => node, () => el('ul', { class: 'cards' })) : el('p', { class: 'empty' }, 'It changed no package, or it was the first one.'),
    complete === false && el('p', { class: 'quiet' }, 'Some packages were too large to compare.'),
    days?.since && [el('h2', {}, 'New versions by day'),
      arrived.length ? rows(arrived, ofDay, () => el('div', {}), DAYS) : el('p', { class: 'empty' }, 'None since ', dayNode(days.since), ', when this mirror began to record days.')],
  ];
}

// Returns what came on a day.
const section = (day, ...came) => el('section', { class: 'day' }, el('h3', {}, day), el('div', {}, came));

const versionsOf = ({ bundles }) => [bundles?.added, bundles?.removed, bundles?.changed].flatMap(list);

// Says what of a package changed besides its versions.
function changedParts({ package: isPackage, channels, deprecations, others }) {
  const any = (lists) => Object.values(lists ?? {}).some((items) => list(items).length > 0);
  return [isPackage && 'Description or default channel', any(channels) && 'Channels', any(deprecations) && 'Deprecations', list(others).length > 0 && 'Other documents'].filter(Boolean).join(', ');
}

// Returns one package that changed, with its icon if the catalog still has it.
function changeRow(catalog, known, name, state, said) {
  const found = known.get(name);
  const label = found?.displayName || name;
  return el('li', { class: 'card small' }, found ? listedIcon(catalog, found) : letter(name),
    el('div', { class: 'card-body' }, el('div', { class: 'card-title' }, found ? el('a', { href: href(['c', catalog, 'p', name]) }, brief(label)) : el('strong', {}, brief(label)), label !== name && el('small', {}, brief(name, 80)), state, !found && el('small', {}, 'not in the catalog any more')), said));
}

// --- A package

const TABS = [['', 'Overview', overview], ['versions', 'Versions', versionsTab], ['upgrade', 'Upgrade path', upgradeTab], ['install', 'Install', installTab], ['changes', 'Changes', changesTab]];
let last = {}; // the package that was read last: its tabs are views of their own

async function packageOf(catalog, name, signal) {
  const path = catalogPath(catalog, `packages/${encodeURIComponent(name)}`);
  return ofOneState(catalog, signal, async (current, cache) => {
    const key = JSON.stringify([catalog, name, current.contentHash]);
    if (last.key === key) return last;
    const found = new Package(name);
    await lines(path, signal, cache, (line) => found.add(line));
    const days = await daysOf(catalog, signal, cache);
    last = { key, found, days, current, path };
    return last;
  });
}

async function viewPackage({ parts: [, catalog, , name, tab = ''], query, signal }) {
  const { found, days, current, path } = await packageOf(catalog, name, signal);
  const channels = [...found.channels.keys()].sort((one, other) => (other === found.defaultChannel) - (one === found.defaultChannel) || other.localeCompare(one, 'en', { numeric: true }));
  const asked = query.get('channel');
  const channel = channels.includes(asked) ? asked : channels.includes(found.defaultChannel) ? found.defaultChannel : channels[0];
  const entries = found.entries(channel);
  const heads = found.heads(channel);
  const wanted = query.get('version');
  const chosen = entries.find(({ name: one }) => one === wanted && found.bundles.has(one))?.name ?? heads.find((one) => found.bundles.has(one)) ?? found.versions().find((one) => found.bundles.has(one));
  const bundle = found.bundles.get(chosen) ?? { name: '', version: '', image: '' };
  // A catalog in the older style has these texts inside of objects, which are read for the shown version only.
  if (bundle.hasObjects && !bundle.permissions) await lines(path, signal, 'default', (line) => { if (line.includes(JSON.stringify(chosen))) found.addObjects(line); });
  const csv = bundle.csv ?? {};
  const at = (one, fields = {}) => href(['c', catalog, 'p', name, ...(one ? [one] : [])], { channel: channel === found.defaultChannel ? '' : channel, version: heads.includes(chosen) ? '' : chosen, ...fields });
  const view = { catalog, name, found, days, current, channels, channel, entries, heads, chosen, bundle, csv, at, query, signal, tab };
  const deprecated = found.deprecation('olm.package');
  const shownTab = TABS.find(([one]) => one === tab);
  const options = entries.filter((entry) => found.bundles.has(entry.name)).slice(0, OPTIONS_MAX).map((entry) => [entry.name, `${found.version(entry.name) || entry.name}${heads.includes(entry.name) ? ' (newest)' : ''}`]);
  return [
    crumbs([catalog, ['c', catalog]], [name]),
    el('div', { class: 'title' }, icon(catalog, name, csv.displayName || name, found.icon),
      el('div', { class: 'grow' }, heading(brief(csv.displayName || name)),
        el('p', { class: 'quiet' }, commas([brief(name), csv.provider && ['by ', brief(csv.provider)]].filter(Boolean)), deprecated !== undefined && [' ', mark('warn', 'Deprecated')]),
        csv.summary && el('p', { class: 'summary' }, brief(csv.summary, 300))),
      el('form', { class: 'pick', submit: (event) => event.preventDefault() },
        choice('Version', 'version', options, chosen, (value) => { location.hash = at(tab, { version: heads.includes(value) ? '' : value }); }),
        el('a', { class: 'button primary', href: at('install') }, 'Install'))),
    tabs('Package', TABS.map(([one, label]) => [label, at(one), one === tab])),
    deprecated !== undefined && el('p', { class: 'note warn' }, el('strong', {}, 'This package is deprecated. '), text(deprecated, 1000)),
    shownTab ? await shownTab[2](view) : el('p', { class: 'empty' }, 'A package has no such page. ', el('a', { href: at('') }, 'Overview')),
  ];
}

// Packages that provide the kinds that a package requires, by kind.
async function providers(catalog, name, required, signal) {
  const kinds = new Set(list(required).map(({ kind }) => kind));
  const packages = kinds.size ? (await indexOf(catalog, signal, 'default')).packages : [];
  return new Map([...kinds].map((kind) => [kind, packages.filter((one) => one.name !== name && list(one.kinds).includes(kind))]));
}

function ladder(level) {
  const at = LEVELS.indexOf(level);
  if (at < 0) return text(level);
  return el('ol', { class: 'ladder' }, LEVELS.map((one, step) => el('li', { class: step <= at ? 'reached' : '', 'aria-current': step === at && 'true' }, one)));
}

async function overview({ catalog, name, found, days, bundle, csv, chosen, signal }) {
  const provided = await providers(catalog, name, bundle.required, signal);
  const api = ({ group, version, kind }) => el('li', {}, el('strong', {}, brief(kind, 80)), ' ', el('small', {}, brief(`${string(group)}/${string(version)}`, 120)));
  const toPackage = ({ name: other }) => el('a', { href: href(['c', catalog, 'p', other]) }, brief(other));
  const wanted = (one) => {
    const node = api(one);
    const by = provided.get(one.kind) ?? [];
    node.append(' ', ...(by.length ? ['provided by ', ...commas(by.slice(0, 10).map(toPackage))] : [el('small', {}, 'provided by no package of this catalog')]));
    return node;
  };
  const needed = ({ packageName, versionRange }) => el('li', {}, toPackage({ name: string(packageName) }), ' ', text(string(versionRange)));
  const several = (items, row) => list(items).length > 0 && el('ul', { class: 'plain' }, list(items).slice(0, 200).map(row));
  const support = found.support(bundle.version, today());
  const day = firstSeen(days, name, chosen);
  const created = /^\d{4}-\d\d-\d\d/.exec(csv.created ?? '')?.[0];
  return el('div', { class: 'article' },
    el('div', {}, el('h2', { class: 'hidden' }, 'Description'), markdown(csv.description || found.description || 'This package has no description.')),
    el('aside', { 'aria-label': 'Facts' }, facts([
      ['Capability level', csv.capabilities && ladder(csv.capabilities)],
      ['Version', text(bundle.version)], ['Maturity', csv.maturity && text(csv.maturity)],
      ['Created', created && dayNode(created)], ['First seen here', day && dayNode(day)],
      ['Support', support && [supportMark(support), support.phase && [' ', el('small', {}, text(support.phase))]]], ['OpenShift', support && text(support.on)], ['Support by', csv.support && text(csv.support)],
      ['Categories', csv.categories && commas(csv.categories.split(',').map((one) => one.trim()).filter(Boolean).map((one) => el('a', { href: href(['c', catalog], { category: one }) }, brief(one))))],
      ['Kubernetes', csv.minKubeVersion && text(`${csv.minKubeVersion} or newer`)], ['CPU', text((csv.arches?.length ? csv.arches : ['amd64']).join(', '))],
      ['Install modes', found.modes(chosen).join(', ')], ['Licence', csv.license && text(csv.license)],
      ['Repository', csv.repository && link(csv.repository, csv.repository.replace(/^https?:\/\/|\/$/g, ''))],
      ['Links', several(csv.links, ({ name: label, url }) => el('li', {}, link(string(url), string(label))))],
      ['Maintainers', several(csv.maintainers, ({ name: label, email }) => el('li', {}, link(`mailto:${string(email)}`, string(label))))],
      ['Provides', several(bundle.provided, api)], ['Requires', several(bundle.required, wanted)], ['Needs packages', several(bundle.packages, needed)],
      ['Operator image', csv.image && el('code', {}, text(csv.image))],
      ['Bundle image', bundle.image && (isReference(bundle.image) ? [el('code', {}, brief(bundle.image)), ' ', copyButton('Copy', bundle.image)] : ['Not an image reference: ', text(bundle.image)])],
      ['Keywords', csv.keywords?.length && text(csv.keywords.map(string).join(', '))],
    ])));
}

const channelChips = ({ found, channels, channel, at, tab }, fields = {}) => channels.length > 1 && el('nav', { 'aria-label': 'Channels', class: 'chips' }, channels.slice(0, 500).map((one) =>
  el('a', { href: at(tab, { channel: one === found.defaultChannel ? '' : one, version: '', ...fields }), 'aria-current': one === channel && 'true' },
    found.deprecation('olm.channel', one) === undefined ? brief(one, 40) : el('s', {}, brief(one, 40)), one === found.defaultChannel && el('small', {}, ' default'))));

// Returns for each entry the parts of the graph in its row. The dots stand in one line; what is not the next row has a line at the side, which
// all targets of one entry share. A marked step is drawn also if a range allows it.
function graphOf(entries, marked) {
  const at = new Map(entries.map(({ name }, row) => [name, row]));
  const lanes = []; // first free row of each
  const rows = entries.map(() => ({ lanes: new Map(), up: false, down: false }));
  entries.forEach(({ replaces, skips }, row) => {
    const targets = [...new Set([...[replaces, ...skips].map((name) => at.get(name)), marked?.get(row)].filter((to) => to > row))];
    if (targets.includes(row + 1)) rows[row].down = rows[row + 1].up = true;
    const far = targets.filter((to) => to > row + 1);
    if (!far.length) return;
    const end = far.reduce((one, other) => Math.max(one, other));
    let lane = lanes.findIndex((free) => free <= row);
    if (lane < 0) lane = lanes.length;
    if (lane >= LANES) return;
    lanes[lane] = end;
    for (let through = row; through <= end; through++) rows[through].lanes.set(`${lane}:${row}`, { lane, from: row, end, isTarget: far.includes(through) });
  });
  return { rows, width: lanes.length };
}

const ROW_PX = 36;

// Draws one row. `marked` are the rows of an upgrade path, whose steps are drawn again.
function graphCell({ lanes, up, down }, row, width, isHead, marked) {
  const middle = ROW_PX / 2;
  const x = (lane) => 22 + lane * 12;
  const path = (d, isMarked) => svg('path', { d, ...(isMarked && { class: 'marked' }) });
  const parts = [];
  const steps = marked ?? new Map();
  if (up) parts.push(path(`M9 0V${middle}`, steps.get(row - 1) === row));
  if (down) parts.push(path(`M9 ${middle}V${ROW_PX}`, steps.get(row) === row + 1));
  for (const { lane, from, end, isTarget } of lanes.values()) {
    const isMarked = steps.has(from) && steps.get(from) > row && steps.get(from) !== from + 1;
    const isEnd = steps.get(from) === row && row !== from + 1;
    if (row === from) parts.push(path(`M9 ${middle}H${x(lane) - 6}Q${x(lane)} ${middle} ${x(lane)} ${middle + 6}V${ROW_PX}`, isMarked));
    else {
      parts.push(path(`M${x(lane)} 0V${row === end ? middle - 6 : ROW_PX}`, isMarked || isEnd));
      if (isTarget) parts.push(path(`M9 ${middle}H${x(lane) - 6}Q${x(lane)} ${middle} ${x(lane)} ${middle - 6}`, isEnd));
    }
  }
  parts.sort((one, other) => one.classList.contains('marked') - other.classList.contains('marked'));
  const isOnWay = steps.has(row) || [...steps.values()].includes(row);
  parts.push(svg('circle', { cx: 9, cy: middle, r: isHead || isOnWay ? 6 : 4, class: `${isHead ? 'head' : ''} ${isOnWay ? 'marked' : ''}` }));
  return svg('svg', { width: 24 + 12 * width, height: ROW_PX, 'aria-hidden': 'true' }, ...parts);
}

// Returns the entries of a channel with their graph. `way` are the bundles of an upgrade path, the first one is installed.
function versionTable({ found, days, name, channel, entries, heads, at, tab }, way) {
  const rowOf = new Map(entries.map(({ name: one }, row) => [one, row]));
  // By the upper row of each step, because an entry leads to what it updates.
  const marked = new Map(list(way).slice(1).map((to, step) => [rowOf.get(to), rowOf.get(way[step])]));
  const graph = graphOf(entries, marked);
  const hasDays = entries.some((entry) => firstSeen(days, name, entry.name));
  const hasSupport = found.lifecycles.length > 0;
  const label = (bundle) => brief(found.version(bundle) || bundle, 40);
  const head = ['Version', 'Graph', 'Updates', hasDays && 'First seen', hasSupport && 'Support', hasSupport && 'OpenShift', 'Notes'].filter(Boolean);
  const row = (entry, number) => {
    const { name: one, replaces, skips, skipRange } = entry;
    const from = [...new Set([replaces, ...skips].filter(Boolean))].sort((a, b) => found.compare(b, a));
    const rest = el('details', { class: 'rest' }, el('summary', {}, `and ${from.length - 2} more`), commas(from.slice(2, 500).map(label)));
    const updates = [commas(from.slice(0, 2).map(label)), from.length > 2 && [' ', rest], skipRange && [from.length > 0 && ' ', el('span', { class: 'range' }, text(skipRange, 60))]];
    const message = found.deprecation('olm.bundle', one);
    const support = hasSupport && found.support(found.version(one), today());
    const isHead = heads.includes(one);
    const isOnWay = list(way).includes(one);
    return el('tr', { class: isOnWay ? 'on-way' : '' },
      el('th', { scope: 'row' }, found.bundles.has(one) ? el('a', { href: at('', { version: isHead ? '' : one }) }, label(one)) : label(one)),
      el('td', { class: 'graph' }, graphCell(graph.rows[number], number, graph.width, isHead, way && marked)),
      el('td', {}, from.length || skipRange ? updates : el('span', { class: 'quiet' }, '–')),
      hasDays && el('td', {}, firstSeen(days, name, one) ? dayNode(firstSeen(days, name, one)) : ''),
      hasSupport && [el('td', {}, supportMark(support)), el('td', {}, support ? text(support.on) : '')],
      el('td', {}, isHead && mark('good', 'head'), isOnWay && [' ', mark('way', one === way[0] ? 'from' : one === way.at(-1) ? 'to' : 'step')],
        message !== undefined && [' ', mark('warn', 'Deprecated'), ' ', text(message, 80)], !found.bundles.has(one) && [' ', el('small', {}, 'not in the catalog')]));
  };
  const [body, more] = rows(entries, row, () => el('tbody', {}), GRAPH_ROWS);
  const table = el('table', { class: 'versions' }, el('caption', { class: 'hidden' }, `Versions of channel ${escaped(channel).slice(0, 80)}`),
    el('thead', {}, el('tr', {}, head.map((title) => el('th', { scope: 'col' }, title)))), body);
  return [el('div', { class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'Versions' }, table), more];
}

function versionsTab(view) {
  const { found, days, channel, channels, entries } = view;
  if (!channels.length) return el('p', { class: 'empty' }, 'This package has no channel.');
  const message = found.deprecation('olm.channel', channel);
  const since = days?.since;
  return [
    el('h2', { class: 'hidden' }, 'Versions'), channelChips(view),
    message !== undefined && el('p', { class: 'note warn' }, el('strong', {}, 'This channel is deprecated. '), text(message, 1000)),
    el('p', { class: 'quiet' }, `${plural(entries.length, 'version')} in `, brief(channel, 60), ', the newest first. Lines lead from a version to those that it updates.'),
    versionTable(view),
    since && el('p', { class: 'quiet' }, entries.some(({ name }) => firstSeen(days, view.name, name)) ? 'First seen is the day on which this mirror first had a version. It has recorded these days since ' : 'This mirror had all these versions when it began to record days, on ', dayNode(since), '.'),
  ];
}

function upgradeTab(view) {
  const { found, channels, channel, at, query, tab, heads } = view;
  const names = found.versions().slice(0, OPTIONS_MAX);
  const known = (field) => (names.includes(query.get(field)) ? query.get(field) : '');
  const [from, to] = [known('from'), known('to') || heads[0] || ''];
  const label = (bundle) => found.version(bundle) || bundle;
  const select = (said, field, value) => choice(said, field, [['', 'Choose'], ...names.map((one) => [one, label(one)])], value, (wanted) => {
    location.hash = at(tab, { from, to, [field]: wanted, version: '', channel: '' });
  });
  const form = el('form', { class: 'tools', submit: (event) => event.preventDefault() }, select('Installed version', 'from', from), select('Version to reach', 'to', to));
  const intro = [el('h2', { class: 'hidden' }, 'Upgrade path'), el('p', { class: 'quiet' }, 'Choose the version that is installed and the one to reach. The path has the fewest steps that the channel allows.'), form];
  if (!to) return intro;
  if (!from) {
    const older = view.entries.map(({ name }) => name).filter((one) => one !== to && found.bundles.has(one));
    return [intro, older.length > 0 && el('nav', { 'aria-label': 'Installed version', class: 'picks' }, el('h3', {}, 'Which version is installed?'), el('div', { class: 'chips' },
      older.slice(0, PICKS).map((one) => el('a', { href: at(tab, { from: one, to, version: '' }) }, brief(label(one), 40)))))];
  }
  const ways = channels.map((one) => ({ channel: one, way: found.steps(one, from, to) })).filter(({ way }) => way).sort((one, other) => one.way.length - other.way.length);
  if (!ways.length) return [intro, el('div', { role: 'status', class: 'note warn' }, el('strong', {}, 'There is no path. '), found.reason(from, to))];
  const asked = ways.find((one) => one.channel === query.get('channel')) ?? ways[0];
  const chips = ways.length > 1 && el('nav', { 'aria-label': 'Channels with a path', class: 'chips' }, ways.slice(0, 500).map((one) =>
    el('a', { href: at(tab, { channel: one.channel, from, to, version: '' }), 'aria-current': one === asked && 'true' }, brief(one.channel, 40), el('small', {}, ` ${plural(one.way.length - 1, 'step')}`))));
  const steps = el('ol', { class: 'steps', start: 0 }, asked.way.slice(0, 1000).map((step, number) => el('li', {}, text(label(step), 60), number === 0 && el('small', {}, ' installed'), number === asked.way.length - 1 && number > 0 && el('small', {}, ' reached'))));
  const inText = `${found.name}, channel ${escaped(asked.channel)}: ${asked.way.map((step) => escaped(label(step))).join(' -> ')}`;
  return [
    intro, chips,
    el('div', { role: 'status' }, el('h3', {}, `${plural(asked.way.length - 1, 'step')} in `, brief(asked.channel, 60))),
    el('div', { class: 'article even' },
      el('div', {}, steps, el('div', { class: 'buttons' }, copyButton('Copy as text', inText))), automatically(found, asked.channel, from, to, label)),
    el('h3', {}, 'In the graph'),
    versionTable({ ...view, channel: asked.channel, entries: found.entries(asked.channel), heads: found.heads(asked.channel) }, asked.way),
  ];
}

// Says what OLM v0 does by itself, which decides by its own order and goes on to the head.
function automatically(found, channel, from, to, label) {
  const way = found.automatic(channel, from);
  const said = () => {
    if (!way) return el('p', {}, 'OLM v0 refuses this channel: it needs exactly one head, and no circle.');
    if (way.length === 1) return el('p', {}, 'It stays at ', text(label(from), 60), '.');
    const listed = way.slice(0, 60).flatMap((step, at) => [at ? ' → ' : '', text(label(step), 60)]);
    return [el('p', {}, `It goes on to ${way.includes(to) && way.at(-1) === to ? 'the version to reach' : 'another version'} in ${plural(way.length - 1, 'step')}: `, listed, way.length > 60 && ' → …'),
      way.at(-1) !== to && el('p', { class: 'warn' }, way.includes(to) ? 'It does not stop at the version to reach: approve by hand to stay there.' : 'It passes over the version to reach: approve by hand.')];
  };
  return el('aside', { class: 'panel', 'aria-label': 'Automatic approval' }, el('h3', {}, 'OLM v0 with automatic approval'), said());
}

function installTab(view) {
  const { catalog, found, current, channel, chosen, bundle, heads, at, query, channels } = view;
  if (!bundle.name) return el('p', { class: 'empty' }, 'No version of this package can be installed.');
  const suffix = manifestSuffix(catalog, string(current.source?.ref));
  const isOpenShift = query.get('platform') !== 'kubernetes';
  const modes = found.modes(chosen);
  const mode = modes.includes(query.get('mode')) ? query.get('mode') : modes[0] ?? 'AllNamespaces';
  const fields = { platform: query.get('platform') ?? '', mode: query.get('mode') ?? '' };
  const go = (more) => { location.hash = at('install', { ...fields, ...more }); };
  const sourceNamespace = isOpenShift ? 'openshift-marketplace' : 'olm';
  const isHead = heads.includes(chosen);
  const options = { found, channel, bundle, suffix, mode, sourceNamespace, isHead };
  const versions = [...new Set(view.entries.map(({ name }) => found.version(name)).filter(Boolean))];
  const added = el('span', { role: 'status' });
  const add = () => {
    setBasket([...basket().filter(([of, one, own]) => of !== catalog || one !== found.name || own !== channel), [catalog, found.name, channel, isHead ? '' : bundle.version, isHead ? '' : bundle.version]]);
    added.replaceChildren('Added. ', el('a', { href: basketPlace(basket()) }, 'Open the basket'));
  };
  return [
    el('h2', { class: 'hidden' }, 'Install'),
    el('form', { class: 'tools', submit: (event) => event.preventDefault() },
      channels.length > 1 && choice('Channel', 'channel', channels.map((one) => [one, one]), channel, (value) => go({ channel: value, version: '' })),
      choice('Platform', 'platform', [['', 'OpenShift'], ['kubernetes', 'Kubernetes']], query.get('platform') ?? '', (value) => go({ platform: value })),
      modes.length > 1 && choice('Install mode (OLM v0)', 'mode', modes.map((one) => [one, one]), mode, (value) => go({ mode: value }))),
    el('h3', {}, 'The catalog, once for each cluster'),
    el('p', {}, 'It becomes ', el('code', {}, `cs-${suffix}`), ' for OLM v0 and ', el('code', {}, `cc-${suffix}`), ' for OLM v1. The files that ', el('code', {}, 'carry in'), ' writes have the same names.'),
    command(`catalog-mirror manifests --url ${location.origin}${isOpenShift ? '' : ' --namespace olm'} ${catalog} | kubectl apply -f -`),
    el('h3', {}, 'Version ', brief(bundle.version || bundle.name, 60), ' of channel ', brief(channel, 60)),
    el('div', { class: 'article even' },
      el('div', {}, el('h4', {}, 'OLM v0'), !modes.length && el('p', { class: 'quiet' }, 'The catalog does not tell the install modes. AllNamespaces is assumed.'),
        command(`kubectl apply -f ${fileName(found.name, 'subscription')}`), fileOf('Subscription', fileName(found.name, 'subscription'), subscription(options), 'h5')),
      el('div', {}, el('h4', {}, 'OLM v1'), modes.length > 0 && !modes.includes('AllNamespaces') && el('p', { class: 'note warn' }, 'This version does not support AllNamespaces, which OLM v1 asks for.'),
        command(`kubectl apply -f ${fileName(found.name, 'clusterextension')}`), fileOf('ClusterExtension', fileName(found.name, 'clusterextension'), extension(options), 'h5'))),
    el('h3', {}, 'For a site without a connection'),
    el('p', {}, isHead ? 'The basket takes this channel. ' : 'The basket takes this version of the channel. ', `It makes an ImageSetConfiguration, and has ${plural(versions.length, 'version')} of the channel to choose from.`),
    el('div', { class: 'buttons' }, el('button', { type: 'button', name: 'add', click: add }, 'Add to basket'), added),
  ];
}

// Names a file after a package whose name may hold anything.
const fileName = (name, kind) => `${name.toLowerCase().replace(/[^a-z0-9-]+/g, '-').replace(/^-+/, '').slice(0, 60) || 'package'}-${kind}.yaml`;

function changesTab({ found, days, name, at, entries }) {
  const since = days?.since;
  const channelsOf = (bundle) => [...found.channels].filter(([, all]) => all.some((entry) => entry.name === bundle)).map(([channel]) => channel);
  const byDay = new Map();
  for (const bundle of found.versions()) {
    const day = firstSeen(days, name, bundle);
    if (!byDay.has(day)) byDay.set(day, []);
    byDay.get(day).push(bundle);
  }
  const row = (bundle) => el('li', {}, el('a', { href: at('', { version: bundle, channel: channelsOf(bundle)[0] ?? '' }) }, brief(found.version(bundle) || bundle, 60)), ' ', el('small', {}, brief(channelsOf(bundle).join(', '), 120)));
  const known = [...byDay].filter(([day]) => day).sort(([one], [other]) => (one < other ? 1 : -1));
  const before = byDay.get('') ?? [];
  return [
    el('h2', { class: 'hidden' }, 'Changes'),
    known.map(([day, bundles]) => section(dayNode(day), rows(bundles, row, () => el('ul', { class: 'changes' })))),
    before.length > 0 && section(since ? 'Before' : 'Versions', el('p', { class: 'quiet' }, since ? ['This mirror had these when it began to record days, on ', dayNode(since), '.'] : 'This mirror has not recorded days.'),
      rows(before, row, () => el('ul', { class: 'changes' }))),
    !entries.length && !before.length && !known.length && el('p', { class: 'empty' }, 'This package has no version.'),
  ];
}

// --- The basket

async function viewBasket({ query, signal }) {
  const shared = readItems(query.getAll('b'));
  const items = shared.length ? shared : basket();
  const set = (changed) => { setBasket(changed); location.hash = basketPlace(changed); };
  if (!items.length) {
    return [heading('Basket'), el('div', { class: 'empty' }, el('p', {}, el('strong', {}, 'The basket is empty.')),
      el('p', {}, 'It collects channels of packages and makes an ImageSetConfiguration of them, for a site without a connection.'),
      el('p', {}, 'Open a package, then Install, and choose “Add to basket”. ', el('a', { href: '#/' }, 'Find a package')))];
  }
  const isPinned = query.get('pin') === '1';
  const catalogs = [...new Set(items.map(([catalog]) => catalog))];
  const [images, packages] = [new Map(), new Map()];
  await Promise.all(catalogs.map(async (catalog) => images.set(catalog, catalogImage(location.host, catalog, await json(catalogPath(catalog, 'current.json'), signal), isPinned))));
  await Promise.all([...new Set(items.map(([catalog, name]) => JSON.stringify([catalog, name])))].map(async (key) => {
    const found = new Package(JSON.parse(key)[1]);
    await lines(catalogPath(JSON.parse(key)[0], `packages/${encodeURIComponent(found.name)}`), signal, 'default', (line) => found.add(line)).catch(absent);
    packages.set(key, found);
  }));
  const packageFor = ([catalog, name]) => packages.get(JSON.stringify([catalog, name]));
  const defaults = new Map(items.map((item) => [`${item[0]}/${item[1]}`, packageFor(item).defaultChannel]));
  const changed = (at, part, value) => set(items.map((item, other) => (other === at ? item.with(part, value) : item)));
  const row = (item, at) => {
    const found = packageFor(item);
    const versions = [...new Set(found.entries(item[2]).map(({ name }) => found.version(name)).filter(Boolean))];
    const bounds = (value) => [['', 'any'], ...[...new Set([value, ...versions])].filter(Boolean).slice(0, OPTIONS_MAX).map((one) => [one, one])];
    const channels = [...new Set([item[2], ...found.channels.keys()])].map((one) => [one, one]);
    return el('li', { class: 'row' }, el('h2', {}, el('a', { href: href(['c', item[0], 'p', item[1]]) }, brief(item[1], 80)), ' ', el('small', {}, brief(item[0], 80))),
      choice('Channel', `channel-${at}`, channels, item[2], (value) => set(items.map((one, other) => (other === at ? [one[0], one[1], value, '', ''] : one)))),
      choice('From version', `least-${at}`, bounds(item[3]), item[3], (value) => changed(at, 3, value)), choice('To version', `most-${at}`, bounds(item[4]), item[4], (value) => changed(at, 4, value)),
      el('button', { type: 'button', name: `remove-${at}`, click: () => set(items.filter((_, other) => other !== at)) }, 'Remove ', el('span', { class: 'hidden' }, brief(item[1], 40))),
      !found.channels.has(item[2]) && el('p', { class: 'warn' }, 'The catalog has no such channel any more.'));
  };
  const pin = el('label', { class: 'check' }, el('input', { type: 'checkbox', name: 'pin', checked: isPinned, change: (event) => { location.hash = href(['basket'], { b: items.map((item) => JSON.stringify(item)), pin: event.target.checked ? '1' : '' }); } }),
    el('span', {}, 'Stay at this digest: the site gets no update of the catalog until this file changes'));
  const plain = location.protocol === 'http:' && [...images.values()].some(({ catalog }) => catalog.startsWith(`${location.host}/`)) ? ` --plain-http ${location.host}` : '';
  return [
    el('div', { class: 'title' }, el('div', { class: 'grow' }, heading('Basket'), el('p', { class: 'quiet' }, `${plural(items.length, 'channel')} for a site without a connection. The address of this view shares the basket.`)),
      el('button', { type: 'button', name: 'clear', click: () => set([]) }, 'Clear')),
    el('ul', { class: 'catalogs basket' }, items.map(row)), pin,
    fileOf('ImageSetConfiguration', 'imageset.yaml', imageSet(items, images, defaults), 'h2'),
    el('h2', {}, 'Next'),
    el('p', {}, 'Bring the catalogs and all their images to a disk, and from there to the registry of the site:'),
    command(`catalog-mirror carry out${plain} imageset.yaml /media/disk`), command('catalog-mirror carry in /media/disk registry.example/olm'),
    el('p', {}, 'Only the catalogs, cut down to these packages:'), command(`catalog-mirror compose${plain} imageset.yaml`),
  ];
}

// --- The view of the place

// Leads on from a place that does not exist: to a search, and to names that are like what was asked for.
async function notFound({ parts: [kind, catalog, , name], signal }, said) {
  const names = list((await json('catalogs.json', signal).catch(() => ({}))).catalogs).filter((one) => typeof one === 'string');
  const isCatalog = kind === 'c' && names.includes(catalog);
  const index = isCatalog && name ? await indexOf(catalog, signal, 'default').catch(absent) : undefined;
  const like = index?.like(name).slice(0, 5) ?? [];
  const field = searchField('Search all catalogs', terms(name ?? '').join(' '), () => {});
  const search = (event) => { event.preventDefault(); location.hash = href([], { q: field.querySelector('input').value }); };
  return [
    el('div', { class: 'hero' }, heading('Not found'), el('p', {}, said), el('form', { role: 'search', submit: search }, field)),
    like.length > 0 && [el('h2', {}, 'Did you mean'), el('ul', { class: 'cards' }, like.map((one) => packageRow(catalog, one)))],
    el('h2', {}, isCatalog ? 'Go to' : 'Catalogs'),
    el('ul', { class: 'links' }, isCatalog ? el('li', {}, el('a', { href: href(['c', catalog]) }, 'All packages of ', brief(catalog))) : names.slice(0, ROWS).map((one) => el('li', {}, el('a', { href: href(['c', one]) }, brief(one)))),
      el('li', {}, el('a', { href: '#/' }, 'All catalogs'))),
  ];
}

const viewUnknown = (at) => notFound(at, 'The address names no catalog, package or page of this mirror.');

const VIEWS = [
  [({ parts }) => parts.length === 0, viewCatalogs], [({ parts }) => parts[0] === 'basket' && parts.length === 1, viewBasket],
  [({ parts }) => parts[0] === 'c' && parts[2] === 'p' && (parts.length === 4 || parts.length === 5), viewPackage],
  [({ parts }) => parts[0] === 'c' && parts[2] === 'changes' && parts.length === 3, viewChanges], [({ parts }) => parts[0] === 'c' && parts.length === 2, viewCatalog],
  [() => true, viewUnknown],
];

function failed(at) {
  return (error) => {
    if (error.status === 404) return notFound(at, text(sentence(error.message.replace(/^404: /, '')), 1000));
    const said = error instanceof Failure || error instanceof TypeError ? error.message : `The answer cannot be used: ${error.message}`;
    return [heading('Error'), el('p', { class: 'note warn' }, text(said, 1000)), el('p', { class: 'buttons' }, el('button', { type: 'button', click: show }, 'Try again'), ' ', el('a', { href: '#/' }, 'Catalogs'))];
  };
}

const skeleton = () => el('div', { class: 'skeleton', 'aria-hidden': 'true' }, ...['title', '', '', '', '', ''].map((kind) => el('div', { class: kind })));

let running = new AbortController();
let before = '';

async function show() {
  running.abort();
  const { signal } = (running = new AbortController());
  clearTimeout(writing);
  clearTimeout(scrolling);
  const main = document.querySelector('main');
  const at = { ...place(), signal };
  const state = history.state;
  // What stays the same place: tabs and choices of one package, and one basket.
  const own = at.parts.slice(0, 4).join('/');
  const isSame = own === before;
  before = own;
  const { name, value } = main.contains(document.activeElement) ? document.activeElement : {};
  const focused = document.activeElement?.getAttribute?.('href');
  main.setAttribute('aria-busy', 'true');
  const busy = setTimeout(() => { if (!isSame) { main.replaceChildren(heading('Loading…'), skeleton()); scrollTo(0, 0); } }, SKELETON_MS);
  const view = VIEWS.find(([fits]) => fits(at))[1];
  const nodes = await Promise.resolve().then(() => view(at)).catch(failed(at));
  clearTimeout(busy);
  if (signal.aborted) return;
  main.replaceChildren(...nodes.flat(Infinity).filter((node) => node));
  main.removeAttribute('aria-busy');
  const title = main.querySelector('h1');
  const site = document.querySelector('#site').textContent;
  document.title = at.parts.length ? `${title.textContent} – ${site}` : site;
  showBasketLink();
  for (const link of document.querySelectorAll('header nav a')) link.toggleAttribute('data-current', (link.id === 'basket-link') === (at.parts[0] === 'basket'));
  if (state?.top !== undefined) scrollTo(0, state.top);
  else if (!isSame) scrollTo(0, 0);
  if (isFirst) { isFirst = false; return; }
  const again = isSame && [...main.querySelectorAll('a, select, button, input')].find((node) => (name ? node.name === name && (node.type === 'select-one' || node.value === value) : focused && (node.getAttribute('href') === focused)));
  (again || title).focus({ preventScroll: true });
}

let isFirst = true;
let scrolling;

history.scrollRestoration = 'manual';
addEventListener('scroll', () => { clearTimeout(scrolling); scrolling = setTimeout(() => remember({ top: scrollY }), 100); }, { passive: true });
addEventListener('click', (event) => { if (event.target.closest?.('a')) { clearTimeout(scrolling); remember({ top: scrollY }); } }, true);
addEventListener('hashchange', show);

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches?.('input:not([type=checkbox]), select, textarea');
  const search = document.querySelector('main input[type=search]');
  if (event.key === '/' && !isTyping) {
    event.preventDefault();
    if (search) search.focus();
    else location.hash = '#/';
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    const links = [...document.querySelectorAll('main .cards .card-title a')];
    const at = links.indexOf(document.activeElement);
    if (!links.length || (at < 0 && event.target !== search)) return;
    const next = at + (event.key === 'ArrowDown' ? 1 : -1);
    event.preventDefault();
    (next < 0 ? search : links[Math.min(next, links.length - 1)]).focus();
  }
});
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); document.querySelector('main h1')?.focus(); });

const titled = document.querySelector('meta[name="application-name"]')?.content;
if (titled) document.querySelector('#site').textContent = titled;
show();
