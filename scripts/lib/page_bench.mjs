// Measures the page in Chromium, in five new profiles each. Prints medians as `name figure unit goal`, with tabs between.
//
//   node page_bench.mjs URL CATALOG PACKAGE LARGE MANY     MANY is a catalog of 5,000 packages
import { createRequire } from 'node:module';

const [url, catalog, median, large, many] = process.argv.slice(2);
const puppeteer = createRequire(`${process.env.NODE_MODULES}/`)('puppeteer-core');
const browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const middle = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];
const print = (...row) => console.log(row.join('\t'));
const settled = (page) => page.waitForSelector('main:not([aria-busy]) h1');

// Opens a view in a new profile: seconds, bytes moved, statuses of the answers; `then` continues in the page.
async function visit(view, then) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const devtools = await page.createCDPSession();
  await devtools.send('Network.enable');
  await page.evaluateOnNewDocument(() => {
    window.shift = 0;
    new PerformanceObserver((found) => { for (const entry of found.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value; }).observe({ type: 'layout-shift', buffered: true });
  });
  let bytes = 0;
  devtools.on('Network.loadingFinished', ({ encodedDataLength }) => { bytes += encodedDataLength; });
  const begin = performance.now();
  await page.goto(`${url}/${view}`);
  await settled(page);
  const seconds = (performance.now() - begin) / 1000;
  // The icons in view.
  await page.waitForNetworkIdle({ idleTime: 300 });
  const shift = await page.evaluate('window.shift');
  const more = await then?.(page, devtools);
  await context.close();
  return { seconds, bytes, shift, more };
}

async function rounds(view, then) {
  const all = [];
  for (let round = 0; round < 5; round++) all.push(await visit(view, then));
  return all;
}

const list = await rounds(`#/c/${catalog}`);
print('list of packages, usable', middle(list.map(({ seconds }) => seconds)).toFixed(2), 's', 1);
print('list of packages with the icons in view, moved', (list[0].bytes / 1000).toFixed(0), 'kB', 200);

// From a key to the result that it changes: the handler runs at once, and the next frame shows it.
const typed = await rounds(`#/c/${catalog}`, (page) => page.evaluate(() => {
  const input = document.querySelector('input[type=search]');
  return ['p', 'po', 'pos', 'post', 'postg', 'o', 'op', 'ope', 'oper'].map((value) => {
    const begin = performance.now();
    input.value = value;
    input.dispatchEvent(new Event('input'));
    document.body.getBoundingClientRect();
    return performance.now() - begin;
  });
}));
print('key to result, slowest of nine', middle(typed.map(({ more }) => Math.max(...more))).toFixed(0), 'ms', 50);
const packages = await rounds(`#/c/${catalog}/p/${median}`);
print('package of median size', middle(packages.map(({ seconds }) => seconds)).toFixed(2), 's', 0.5);
const moved = (await rounds(`#/c/${catalog}/changes`)).concat(await rounds('#/'), list, packages);
print('layout shift, largest of four views', Math.max(...moved.map(({ shift }) => shift)).toFixed(3), '', 0.05);
print('list of 5,000 packages, usable', middle((await rounds(`#/c/${many}`)).map(({ seconds }) => seconds)).toFixed(2), 's', 1);

const heap = async (page, devtools) => {
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  return usedSize / 1e6;
};
const largest = await rounds(`#/c/${catalog}/p/${large}`, heap);
print(`package ${large}`, middle(largest.map(({ seconds }) => seconds)).toFixed(2), 's', 2);
print(`package ${large}, JavaScript heap`, Math.max(...largest.map(({ more }) => more)).toFixed(0), 'MB', 200);

// A status of the last poll is never kept; the headers of an answer 304 take some bytes too.
const again = await visit(`#/c/${catalog}`, async (page, devtools) => {
  let bytes = 0;
  devtools.on('Network.loadingFinished', ({ encodedDataLength }) => { bytes += encodedDataLength; });
  await page.reload();
  await settled(page);
  await page.waitForNetworkIdle({ idleTime: 300 });
  return bytes / 1000;
});
print('second visit, moved', again.more.toFixed(1), 'kB', 5);
await browser.close();
