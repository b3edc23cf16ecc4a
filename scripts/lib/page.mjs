// Drives the page of a mirror in Chromium, and prints a line for each check as scripts/lib/check.sh does.
//
//   node page.mjs URL FOLDER          with the catalogs demo, hostile and odd; FOLDER takes what the page writes
//   node page.mjs URL FOLDER demo     search and versions, with demo alone
//   node page.mjs URL FOLDER brief    search, versions, basket and hostile texts: with demo and hostile on another server
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [url, folder, brief] = process.argv.slice(2);
const require = createRequire(`${process.env.NODE_MODULES}/`);
const puppeteer = require('puppeteer-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const VIEWS = {
  catalogs: '#/', catalog: '#/c/demo', package: '#/c/demo/p/demo-queue', changes: '#/c/demo/changes', unknown: '#/c/none',
  basket: `#/basket?b=${encodeURIComponent(JSON.stringify(['demo', 'demo-queue', 'fast', '', '']))}`, hostile: '#/c/hostile/p/hostile',
};

const said = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
function is(name, found, expected) {
  if (said(found) === said(expected)) console.log(`ok ${name}`);
  else console.log(`not ok ${name}: ${said(found)} is not ${said(expected)}`.replaceAll('\n', ' ').slice(0, 900));
}

const browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
const [requests, trouble] = [[], []];
page.on('request', (request) => requests.push(request.url()));
page.on('dialog', (dialog) => { trouble.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
page.on('pageerror', (error) => trouble.push(error.message));
await page.exposeFunction('violated', (what) => trouble.push(`policy ${what}`));
await page.evaluateOnNewDocument(() => addEventListener('securitypolicyviolation', (event) => window.violated(`${event.violatedDirective} ${event.blockedURI}`)));
const devtools = await page.createCDPSession();

async function open(view) {
  await page.goto('about:blank');
  await page.goto(`${url}/${view}`);
  await page.waitForSelector('main:not([aria-busy]) h1');
}
const evaluate = async (expression) => (await devtools.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })).result.value;
const texts = (selector) => page.$$eval(selector, (nodes) => nodes.map((node) => node.textContent));
const settled = () => page.waitForSelector('main:not([aria-busy]) h1');

async function looks() {
  for (const [name, view] of Object.entries(VIEWS)) {
    for (const [scheme, width] of [['light', 320], ['dark', 768], ['light', 1440], ['dark', 1440]]) {
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

async function search() {
  await open('#/c/demo');
  const all = Object.keys((await (await fetch(`${url}/catalogs/demo/search.json`)).json()).packages);
  is('all packages are listed', (await texts('ul.results > li')).length, all.length);
  await page.type('input[type=search]', 'QUEU');
  is('a search finds a package while it is typed', (await texts('ul.results small bdi'))[0], 'demo-queue');
  is('and says how many there are', (await texts('[role=status]'))[0], `1 of ${all.length} packages`);
  await page.reload();
  await settled();
  is('the address keeps the search', await page.$eval('input[type=search]', (node) => node.value), 'QUEU');
  await page.focus('input[type=search]');
  for (let at = 0; at < 5; at++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('/p/'));
  await settled();
  is('the keyboard opens the package', await evaluate('location.hash.split("?")[0]'), '#/c/demo/p/demo-queue');
  await page.goBack();
  await page.waitForSelector('input[type=search]');
  is('back goes to the search', await page.$eval('input[type=search]', (node) => node.value), 'QUEU');
}

async function versions() {
  const lines = (await (await fetch(`${url}/catalogs/demo/packages/demo-queue`)).text()).trim().split('\n').map((line) => JSON.parse(line));
  const bundles = lines.filter(({ schema }) => schema === 'olm.bundle');
  const channels = lines.filter(({ schema }) => schema === 'olm.channel');
  const version = ({ properties }) => properties.find(({ type }) => type === 'olm.package').value.version;
  await open('#/c/demo/p/demo-queue');
  is('each version has a row', (await texts('tbody th')).sort(), bundles.map(version).sort());
  is('each channel has a column', (await texts('thead th')).length, 1 + channels.length);
  is('each channel has a head', (await texts('td .head')).length, channels.length);
  const { name, entries } = channels.find((channel) => channel.entries.some(({ replaces }) => replaces));
  await page.select('main p select', name);
  await page.waitForFunction((channel) => location.hash.includes(`channel=${channel}`), {}, name);
  await settled();
  is('each upgrade has an arc', (await texts('svg path')).length, entries.filter(({ replaces }) => entries.some((entry) => entry.name === replaces)).length);
  const step = entries.find(({ replaces }) => entries.some((entry) => entry.name === replaces));
  await page.select('select[name=from]', step.replaces);
  await page.select('select[name=to]', step.name);
  is('the way between two versions is told', (await texts('main [role=status] li')).some((way) => way.startsWith(`${name}, 1 step:`)), true);
  await page.select('select[name=from]', step.name);
  await page.select('select[name=to]', step.replaces);
  is('and that there is none', (await texts('main form + [role=status]'))[0], 'Upgrades lead to newer versions only.');
  for (const kind of ['ClusterExtension', 'Subscription']) writeFileSync(`${folder}/${kind}.yaml`, (await texts(`section[aria-label=${kind}] pre`))[0]);
  await page.click('main form button[type=submit]');
  await page.waitForFunction(() => document.querySelector('#basket-link').textContent === 'Basket (1)');
  await page.click('#basket-link');
  await page.waitForSelector('section[aria-label=ImageSetConfiguration]');
  writeFileSync(`${folder}/imageset.yaml`, (await texts('section[aria-label=ImageSetConfiguration] pre'))[0]);
  writeFileSync(`${folder}/chosen`, name);
}

async function hostile() {
  await open('#/c/hostile/p/hostile');
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const nodes = await evaluate("[...document.querySelectorAll('main *')].map(({localName}) => localName)");
  is('hostile texts make no nodes of their own', nodes.filter((name) => ['script', 'iframe', 'object', 'embed', 'style', 'form2', 'marquee', 'base', 'link', 'meta'].includes(name)), []);
  const links = await page.$$eval('main a', (all) => all.map(({ protocol, rel, target }) => [protocol, target ? rel : 'noopener noreferrer']));
  is('links lead to pages, and tell them nothing', links.filter(([protocol, rel]) => !/^(https?|mailto):$/.test(protocol) || rel !== 'noopener noreferrer'), []);
  is('an icon of another type is left out', (await page.$$('main img')).length, 0);
  is('letters that turn the text are shown as what they are', (await texts('main')).join('').includes('\\u{202e}'), true);
  is('no letter that turns the text is copied', (await texts('section pre')).filter((copied) => /[\p{Cf}\p{Zl}\p{Zp}]/u.test(copied)), []);
  is('scripts stay text', (await texts('main')).join('').includes('<script>alert(1)</script>'), true);
}

// Each package of the catalog `odd` is odd in its own way, and is shown all the same.
async function odd() {
  const { packages } = await (await fetch(`${url}/catalogs/odd/packages`)).json();
  await open('#/c/odd');
  is('odd: all packages are listed', (await texts('main [role=status]'))[0], `${packages.length} of ${packages.length} packages`);
  for (const { name } of packages) {
    await page.goto('about:blank');
    await page.goto(`${url}/#/c/odd/p/${encodeURIComponent(name)}`, { waitUntil: 'domcontentloaded' });
    await settled();
    const [versions, icons, title] = [await texts('tbody th'), await page.$$('main img'), (await texts('h1'))[0]];
    // No URL has such names: a browser takes `..` for the folder above.
    const shown = name === '..' || name.length > 1000 ? title === 'This did not work' : title !== 'This did not work' && versions.length === (name === 'versions' ? 100 : 3);
    is(`odd: ${JSON.stringify(name).slice(0, 40)} is shown`, shown || `${title} with ${versions}`, true);
    is(`odd: ${JSON.stringify(name).slice(0, 40)} has an icon if it can`, icons.length, name === 'icon of SVG' ? 1 : 0);
  }
  await open('#/c/odd/p/versions');
  await page.select('select[name=from]', 'versions.v0.0.1');
  await page.select('select[name=to]', 'versions.v9999.0.0');
  is('odd: the way over 10,000 versions is told', (await texts('main [role=status] li'))[0].startsWith('stable, 9999 steps: '), true);
}

// Failures of each request, and a publication between two requests of one view.
async function faults() {
  let answer;
  await page.setRequestInterception(true);
  const intercept = (request) => { const made = answer?.(new URL(request.url()).pathname); if (made) request.respond({ contentType: 'application/json', ...made }); else request.continue(); };
  page.on('request', intercept);
  for (const [view, path] of [['#/', 'catalogs.json'], ['#/', 'status.json'], ['#/c/demo', 'current.json'], ['#/c/demo', 'search.json'],
    ['#/c/demo/changes', 'changes'], ['#/c/demo/p/demo-queue', 'packages/demo-queue']]) {
    for (const made of [{ status: 404 }, { status: 401, body: '{"detail": "no login"}' }, { status: 503 }, { status: 304 }, { status: 200, body: '{"a": 1}\n{"half' }]) {
      answer = (asked) => asked.endsWith(path) && made;
      await open(view);
      const [said, fine] = [(await texts('main'))[0], path === 'status.json' || (path === 'search.json' && made.status === 404)];
      answer = undefined;
      if (fine) { is(`${made.status} for ${path} leaves the rest`, said.includes('demo'), true); continue; }
      is(`${made.status} for ${path} is told`, /^This did not work.*Try again$/s.test(said) || said, true);
      await (await page.$('main button:last-of-type')).click();
      await page.waitForFunction(() => document.querySelector('h1').textContent !== 'This did not work');
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
  const loaded = asked.slice(asked.indexOf('current.json')).slice(0, 4);
  is('a publication between two requests loads the view again', loaded, ['current.json', 'search.json', 'current.json', 'search.json']);
  page.off('request', intercept);
  await page.setRequestInterception(false);
}

try {
  if (!brief) await looks();
  await search();
  await versions();
  if (brief !== 'demo') await hostile();
  if (!brief) await odd();
  if (!brief) await faults();
} catch (error) {
  console.log(`not ok the page can be driven: ${error.message}`.replaceAll('\n', ' '));
}
is('nothing went wrong on the page', trouble, []);
is('no other host was asked', [...new Set(requests.filter((asked) => !asked.startsWith(`${url}/`) && !/^(data|about):/.test(asked)))], []);
await browser.close();
