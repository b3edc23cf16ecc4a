// Drives the page of a mirror in Chromium, and prints a line for each check as scripts/lib/check.sh does.
//
//   node page.mjs URL FOLDER          with the catalogs demo, hostile and odd; FOLDER takes what the page writes
//   node page.mjs URL FOLDER short    the same, each view in two windows in place of four
//   node page.mjs URL FOLDER demo     search and versions, with demo alone
//   node page.mjs URL FOLDER brief    search, versions, basket and hostile texts: on another server
//   node page.mjs URL FOLDER few      the same with demo and hostile alone
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [url, folder, kind = 'whole'] = process.argv.slice(2);
const isWhole = ['whole', 'short'].includes(kind);
const require = createRequire(`${process.env.NODE_MODULES}/`);
const puppeteer = require('puppeteer-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const TABS = ['', '/versions', '/upgrade', '/install', '/changes'];
const VIEWS = {
  catalogs: '#/', 'search of all catalogs': '#/?q=demo', catalog: '#/c/demo', changes: '#/c/demo/changes', 'a catalog that is held': '#/c/held', unknown: '#/c/none', 'unknown address': '#/nothing', 'unknown package': '#/c/demo/p/demo-quue', 'empty basket': '#/basket',
  basket: `#/basket?b=${encodeURIComponent(JSON.stringify(['demo', 'demo-queue', 'fast', '', '']))}`,
  ...Object.fromEntries(['demo/p/demo-queue', 'hostile/p/hostile'].flatMap((name) => TABS.map((tab) => [`${name}${tab}`, `#/c/${name}${tab}`]))),
};

const said = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
function is(name, found, expected) {
  if (said(found) === said(expected)) console.log(`ok ${name}`);
  else console.log(`not ok ${name}: ${said(found)} is not ${said(expected)}`.replaceAll('\n', ' ').slice(0, 900));
}

const browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
const [requests, trouble] = [[], []];
page.on('request', (request) => requests.push(request));
page.on('dialog', (dialog) => { trouble.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
page.on('pageerror', (error) => trouble.push(error.message));
await page.exposeFunction('violated', (what) => trouble.push(`policy ${what}`));
await page.evaluateOnNewDocument(() => addEventListener('securitypolicyviolation', (event) => window.violated(`${event.violatedDirective} ${event.blockedURI}`)));
const devtools = await page.createCDPSession();
// What a policy forbids is announced and never sent.
const forbidden = new Set();
await devtools.send('Network.enable');
devtools.on('Network.loadingFailed', ({ requestId, blockedReason }) => { if (blockedReason === 'csp') forbidden.add(requestId); });

async function open(view) {
  await page.goto('about:blank');
  await page.goto(`${url}/${view}`);
  await page.waitForSelector('main:not([aria-busy]) h1');
}
const evaluate = async (expression) => (await devtools.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })).result.value;
const texts = (selector) => page.$$eval(selector, (nodes) => nodes.map((node) => node.textContent));
const settled = () => page.waitForSelector('main:not([aria-busy]) h1');

const WINDOWS = [['light', 320], ['dark', 1440], ...(kind === 'short' ? [] : [['dark', 768], ['light', 1440]])];

async function looks() {
  for (const [name, view] of Object.entries(VIEWS)) {
    for (const [scheme, width] of WINDOWS) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await page.setViewport({ width, height: 900 });
      await open(view);
      await evaluate(axe);
      const run = `axe.run({runOnly: ${JSON.stringify(RULES)}}).then(({violations}) => violations.map(({id, nodes}) => [id, nodes[0].html.slice(0, 200)]))`;
      is(`${name}, ${scheme}, ${width} px: axe finds nothing`, await evaluate(run), []);
      is(`${name}, ${scheme}, ${width} px: nothing is wider than the window`, await evaluate('document.documentElement.scrollWidth <= innerWidth'), true);
    }
  }
}

// Each view of a catalog reads what is there, and the links below it lead to documents.
async function leads() {
  const failed = [];
  const note = (answer) => { if (answer.status() >= 400) failed.push(`${answer.status()} ${answer.url()}`); };
  page.on('response', note);
  for (const view of ['#/', '#/?q=demo', '#/c/demo', '#/c/demo/changes', ...TABS.map((tab) => `#/c/demo/p/demo-queue${tab}`)]) await open(view);
  const links = await page.$$eval('footer a', (all) => all.filter(({ origin }) => origin === location.origin).map(({ href }) => href));
  for (const link of links) {
    const { status } = await fetch(link);
    if (status >= 400) failed.push(`${status} ${link}`);
  }
  page.off('response', note);
  is(`${links.length} links below and all views of a catalog lead to no error`, failed, []);
  await open('#/c/demo/p/demo-quue');
  is('a name that is not there leads to one that is like it', (await texts('.card-title small bdi'))[0], 'demo-queue');
}

const typed = (text) => page.waitForFunction((wanted) => location.hash.includes(`q=${wanted}`), {}, text);
const count = async () => (await texts('main [role=status]'))[0];

async function search() {
  await page.setViewport({ width: 1440, height: 900 });
  const all = Object.keys((await (await fetch(`${url}/catalogs/demo/search.json`)).json()).packages);
  await open('#/');
  await page.keyboard.press('/');
  await page.keyboard.type('queue');
  await page.waitForSelector('ul.cards > li');
  is('the first view searches all catalogs, after a slash', (await texts('.card-title small bdi'))[0], 'demo-queue');
  await open('#/c/demo');
  is('all packages are listed', (await texts('ul.cards > li')).length, all.length);
  await page.type('input[type=search]', 'QUEU');
  is('a search finds a package while it is typed', (await texts('.card-title small bdi'))[0], 'demo-queue');
  is('and says how many there are', await count(), `1 of ${all.length} packages`);
  await typed('QUEU');
  await page.reload();
  await settled();
  is('the address keeps the search', await page.$eval('input[type=search]', (node) => node.value), 'QUEU');
  await page.focus('input[type=search]');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('/p/'));
  await settled();
  is('the keyboard opens the package', await evaluate('location.hash.split("?")[0]'), '#/c/demo/p/demo-queue');
  await page.goBack();
  await page.waitForSelector('input[type=search]');
  is('back goes to the search', await page.$eval('input[type=search]', (node) => node.value), 'QUEU');
  for (const [asked, found] of [['qeueu', '0'], ['queeu', '1']]) {
    await page.$eval('input[type=search]', (node) => { node.value = ''; });
    await page.type('input[type=search]', asked);
    is(`a search for ${asked} forgives one typo`, (await count()).split(' ')[0], found);
  }
  await page.$eval('input[type=search]', (node) => { node.value = 'nothing has this'; node.dispatchEvent(new Event('input')); });
  is('an empty result says what to try', (await texts('.empty'))[0].includes('Use fewer words'), true);
  await open('#/c/demo');
  const [value, number] = await page.$eval('fieldset label', (node) => [node.querySelector('input').value, Number(node.querySelector('small').textContent)]);
  await page.click('fieldset input');
  is('a facet leaves as many packages as it says', (await texts('ul.cards > li')).length, number);
  is('and keeps the focus', await evaluate('document.activeElement.value'), value);
}

async function versions() {
  const lines = (await (await fetch(`${url}/catalogs/demo/packages/demo-queue`)).text()).trim().split('\n').map((line) => JSON.parse(line));
  const bundles = new Map(lines.filter(({ schema }) => schema === 'olm.bundle').map((bundle) => [bundle.name, bundle]));
  const channels = lines.filter(({ schema }) => schema === 'olm.channel');
  const version = (name) => bundles.get(name).properties.find(({ type }) => type === 'olm.package').value.version;
  const { name, entries } = channels.find((channel) => channel.entries.some(({ replaces }) => replaces));
  await open(`#/c/demo/p/demo-queue/versions?channel=${encodeURIComponent(name)}`);
  is('channels are links if there are several', (await texts('.chips a')).length, channels.length > 1 ? channels.length : 0);
  is('each version of a channel has a row', (await texts('.versions tbody th')).sort(), entries.map((entry) => version(entry.name)).sort());
  is('the channel has a head', (await texts('.mark.good')).length, 1);
  const step = entries.find(({ replaces }) => entries.some((entry) => entry.name === replaces));
  is('each version stands beside its place in the graph', (await texts('.versions circle')).length, entries.length);
  await open(`#/c/demo/p/demo-queue/upgrade?from=${encodeURIComponent(step.replaces)}`);
  await page.select('select[name=to]', step.name);
  await page.waitForFunction((to) => location.hash.includes(`to=${encodeURIComponent(to)}`), {}, step.name);
  await settled();
  is('the path between two versions is told', (await texts('main [role=status] h3'))[0].startsWith('1 step in '), true);
  is('and marked in the graph', (await texts('tr.on-way')).length, 2);
  is('and what OLM v0 does by itself', (await texts('.panel h3'))[0], 'OLM v0 with automatic approval');
  await open(`#/c/demo/p/demo-queue/upgrade?from=${encodeURIComponent(step.name)}&to=${encodeURIComponent(step.replaces)}`);
  is('and that there is none', (await texts('main [role=status]'))[0], 'There is no path. Upgrades lead to newer versions only.');
  await open(`#/c/demo/p/demo-queue/install?channel=${encodeURIComponent(name)}`);
  for (const kind of ['ClusterExtension', 'Subscription']) writeFileSync(`${folder}/${kind}.yaml`, (await texts(`section[aria-label=${kind}] pre`))[0]);
  const top = await evaluate('document.querySelector("button[name=add]").scrollIntoView(), scrollY');
  await page.click('button[name=add]');
  await page.waitForFunction(() => document.querySelector('#basket-link').textContent === 'Basket (1)');
  is('the basket takes it without leaving the place', await evaluate('scrollY'), top);
  await page.click('#basket-link');
  await page.waitForSelector('section[aria-label=ImageSetConfiguration]');
  const written = async () => (await texts('section[aria-label=ImageSetConfiguration] pre'))[0];
  writeFileSync(`${folder}/imageset.yaml`, await written());
  writeFileSync(`${folder}/chosen`, name);
  const least = version(entries[0].name);
  await page.select('select[name=least-0]', least);
  await page.waitForFunction(() => document.querySelector('section pre').textContent.includes('minVersion'));
  is('a row of the basket can be edited', (await written()).includes(`minVersion: "${least}"`), true);
  await page.click('input[name=pin]');
  await page.waitForFunction(() => document.querySelector('section pre').textContent.includes('@sha256:'));
  is('and the catalog can stay at its digest', /catalog: "[^"]+@sha256:[0-9a-f]{64}"\n {6}targetTag: "latest"/.test(await written()), true);
  await page.click('button[name=clear]');
  await page.waitForSelector('.empty');
  is('and be cleared', (await texts('#basket-link'))[0], 'Basket');
}

async function hostile() {
  for (const tab of TABS) {
    await open(`#/c/hostile/p/hostile${tab}`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const nodes = await evaluate("[...document.querySelectorAll('main *')].map(({localName}) => localName)");
    is(`hostile${tab}: texts make no nodes of their own`, nodes.filter((name) => ['script', 'iframe', 'object', 'embed', 'style', 'form2', 'marquee', 'base', 'link', 'meta'].includes(name)), []);
    const links = await page.$$eval('main a:not([download])', (all) => all.map(({ protocol, rel, target }) => [protocol, target ? rel : 'noopener noreferrer']));
    is(`hostile${tab}: links lead to pages, and tell them nothing`, links.filter(([protocol, rel]) => !/^(https?|mailto):$/.test(protocol) || rel !== 'noopener noreferrer'), []);
    is(`hostile${tab}: an icon of another type is left out`, (await page.$$('main img')).length, 0);
    is(`hostile${tab}: letters that turn the text are shown as what they are`, (await texts('main')).join('').includes('\\u{202e}'), true);
    is(`hostile${tab}: no letter that turns the text is copied`, (await texts('section pre')).filter((copied) => /[\p{Cf}\p{Zl}\p{Zp}]/u.test(copied)), []);
    is(`hostile${tab}: scripts stay text`, (await texts('main')).join('').includes('<script>alert(1)</script>'), true);
  }
}

// An icon that is opened by itself runs no script and loads nothing.
async function scripted() {
  await page.goto(`${url}/catalogs/odd/icons/svg.svg`);
  is('an SVG icon is drawn by itself', await evaluate("getComputedStyle(document.querySelector('rect')).fill"), 'rgb(255, 0, 0)');
  is('and its script does not run', await evaluate('document.documentElement.id'), '');
}

// Each package of the catalog `odd` is odd in its own way, and is shown all the same.
async function odd() {
  const { packages } = await (await fetch(`${url}/catalogs/odd/packages`)).json();
  await open('#/c/odd');
  is('odd: all packages are listed', await count(), `${packages.length} packages`);
  for (const { name } of packages) {
    await page.goto('about:blank');
    await page.goto(`${url}/#/c/odd/p/${encodeURIComponent(name)}/versions`, { waitUntil: 'domcontentloaded' });
    await settled();
    await page.waitForFunction(() => [...document.querySelectorAll('main .title img')].every((image) => image.naturalWidth > 0));
    const [versions, icons, title] = [await texts('tbody th'), await page.$$('main .title img'), (await texts('h1'))[0]];
    const isLost = ['Error', 'Not found'].includes(title);
    // No URL has such names: a browser takes `..` for the folder above.
    const shown = name === '..' || name.length > 1000 ? isLost : !isLost && versions.length === (name === 'versions' ? 300 : 3);
    is(`odd: ${JSON.stringify(name).slice(0, 40)} is shown`, shown || `${title} with ${versions}`, true);
    is(`odd: ${JSON.stringify(name).slice(0, 40)} has an icon if it can`, icons.length, name === 'svg' ? 1 : 0);
  }
  await open('#/c/odd/p/versions/upgrade?from=versions.v0.0.1&to=versions.v9999.0.0');
  is('odd: the path over 10,000 versions is told', (await texts('main [role=status] h3'))[0], '9,999 steps in stable');
}

// Failures of each request, and a publication between two requests of one view.
async function faults() {
  let answer;
  await page.setRequestInterception(true);
  const intercept = (request) => { const made = answer?.(new URL(request.url()).pathname); if (made) request.respond({ contentType: 'application/json', ...made }); else request.continue(); };
  page.on('request', intercept);
  for (const [view, path] of [['#/', 'catalogs.json'], ['#/', 'status.json'], ['#/c/demo', 'current.json'], ['#/c/demo', 'search.json'], ['#/c/demo', 'days.json'],
    ['#/c/demo/changes', 'changes'], ['#/c/demo/p/demo-queue', 'packages/demo-queue']]) {
    for (const made of [{ status: 404 }, { status: 401, body: '{"detail": "no login"}' }, { status: 503 }, { status: 304 }, { status: 200, body: '{"a": 1}\n{"half' }]) {
      answer = (asked) => asked.endsWith(path) && made;
      await open(view);
      const [said, fine] = [(await texts('main'))[0], path === 'status.json' || path === 'days.json' || (['search.json', 'changes'].includes(path) && made.status === 404)];
      answer = undefined;
      if (fine) { is(`${made.status} for ${path} leaves the rest`, said.includes('demo'), true); continue; }
      if (made.status === 404) { is(`404 for ${path} leads to the catalogs`, /^Not found.*All catalogs$/s.test(said) || said, true); continue; }
      is(`${made.status} for ${path} is told`, /^Error.*Try again Catalogs$/s.test(said) || said, true);
      await (await page.$('main button:last-of-type')).click();
      await page.waitForFunction(() => document.querySelector('h1').textContent !== 'Error');
      await settled();
    }
  }
  const current = await (await fetch(`${url}/catalogs/demo/current.json`)).json();
  const asked = [];
  await page.goto('about:blank');
  answer = (path) => {
    const document = path.split('/').at(-1);
    const first = document === 'current.json' && !asked.includes(document);
    asked.push(document);
    return first && { status: 200, body: JSON.stringify({ ...current, contentHash: 'f'.repeat(64) }) };
  };
  await open('#/c/demo');
  // What came before the pointer belongs to the view before this one, and a further load would be allowed.
  const loaded = asked.slice(asked.indexOf('current.json')).filter((document) => ['current.json', 'search.json'].includes(document)).slice(0, 4);
  is('a publication between two requests loads the view again', loaded, ['current.json', 'search.json', 'current.json', 'search.json']);
  // A slow mirror: the next view is announced at once, and nothing moves when it comes.
  await open('#/');
  answer = undefined;
  page.off('request', intercept);
  const slow = (request) => setTimeout(() => request.continue(), request.url().includes('/catalogs/') ? 800 : 0);
  page.on('request', slow);
  await page.evaluate(() => {
    window.shift = 0;
    new PerformanceObserver((found) => { for (const entry of found.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value; }).observe({ type: 'layout-shift' });
    location.hash = '#/c/demo';
  });
  const begin = performance.now();
  await page.waitForSelector('main[aria-busy] .skeleton');
  is('something is seen before a slow mirror answers', performance.now() - begin < 800 || performance.now() - begin, true);
  await page.waitForSelector('main:not([aria-busy]) ul.cards');
  is('and the layout does not shift', await evaluate('window.shift') < 0.05 || await evaluate('window.shift'), true);
  page.off('request', slow);
  await page.setRequestInterception(false);
}

try {
  if (isWhole) await looks();
  await leads();
  await search();
  await versions();
  if (kind !== 'demo') await hostile();
  if (!['demo', 'few'].includes(kind)) await scripted();
  if (isWhole) await odd();
  if (isWhole) await faults();
} catch (error) {
  console.log(`not ok the page can be driven: ${error.message}`.replaceAll('\n', ' '));
}
is('nothing went wrong on the page', trouble, []);
is('no other host was asked', [...new Set(requests.filter((asked) => !forbidden.has(asked.id)).map((asked) => asked.url()).filter((asked) => !asked.startsWith(`${url}/`) && !/^(data|about):/.test(asked)))], []);
await browser.close();
