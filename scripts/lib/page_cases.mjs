// Judges the rules of the page by the table of cases that judges the Rust crates too. Prints a line for each kind, as scripts/lib/check.sh does.
//
//   node page_cases.mjs
import { readFileSync } from 'node:fs';
import { Package, SearchIndex, manifestSuffix, parseRange, parseVersion } from '../../shared/serving/api/page/rules.js';

const cases = JSON.parse(readFileSync(new URL('../../tests/cases.json', import.meta.url), 'utf8'));

function judge(name, rows, wrong) {
  const found = rows.map(wrong).find(Boolean);
  console.log(found ? `not ok ${name}: ${found}` : `ok ${name}: ${rows.length} cases`);
}

const differs = (found, expected, of) => JSON.stringify(found) !== JSON.stringify(expected) && `${of}: ${JSON.stringify(found)} is not ${JSON.stringify(expected)}`;

judge('ranges have the versions of the table', cases.ranges, ({ range, in: within, out }) => {
  const contains = parseRange(range);
  return differs([within, out].map((all) => all.map((version) => contains(parseVersion(version)))), [within.map(() => true), out.map(() => false)], range);
});

judge('upgrades take the steps of the table', cases.upgrades, ({ case: name, entries, from, to, steps, automatic }) => {
  const found = new Package('p');
  found.add(JSON.stringify({ schema: 'olm.channel', package: 'p', name: 'c', entries }));
  for (const entry of entries) {
    const properties = [{ type: 'olm.package', value: { packageName: 'p', version: entry.name.slice(1) } }];
    found.add(JSON.stringify({ schema: 'olm.bundle', package: 'p', name: entry.name, properties }));
  }
  return differs([found.steps('c', from, to) ?? null, found.automatic('c', from) ?? null], [steps, automatic], name);
});

const index = new SearchIndex(cases.search);
judge('search finds the packages of the table in their order', cases.search.queries, ({ q, found }) => differs(index.find(q).map(([{ name }]) => name), found, q));
judge('versions have the support of the table', cases.support, ({ case: name, version, day, versions, state, phase, daysLeft }) => {
  const found = new Package('p');
  found.add(JSON.stringify({ schema: 'io.openshift.operators.lifecycles.v1alpha1', package: 'p', versions }));
  const support = found.support(version, day);
  const left = support?.until && Math.round((Date.parse(support.until) - Date.parse(day)) / 86_400_000);
  return differs([support?.state ?? 'no-data', support?.phase, left], [state, phase, daysLeft], name);
});
judge('manifests have the names of the table', cases.names, ({ catalog, source, suffix }) => differs(manifestSuffix(catalog, source), suffix, catalog));
