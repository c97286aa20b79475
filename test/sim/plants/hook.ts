/**
 * Loaded with --import: changes the text of production modules as the plant named in SIM_PLANT
 * says.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { PLANTS } from './all.ts';
import type { Patch } from './plant.ts';

const ROOT = new URL('../../../', import.meta.url);
const name = process.env['SIM_PLANT'];
const plant = PLANTS.find((one) => one.name === name);
if (!plant) throw new Error(`no plant ${name}; there are: ${PLANTS.map((p) => p.name).join(', ')}`);
const patches = new Map<string, Patch[]>();
for (const patch of plant.patches) {
  const { href } = new URL(patch.file, ROOT);
  const occurs = readFileSync(new URL(href), 'utf8').split(patch.find).length - 1;
  // The code has changed since: a plant that patches nothing would prove nothing.
  if (occurs !== 1) {
    throw new Error(`plant ${name}: "${patch.find}" occurs ${occurs} times in ${patch.file}`);
  }
  patches.set(href, [...(patches.get(href) ?? []), patch]);
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const mine = patches.get(url);
    if (!mine) return loaded;
    let source = readFileSync(new URL(url), 'utf8');
    for (const { find, replace } of mine) source = source.replace(find, () => replace);
    return { ...loaded, source, format: 'module-typescript' };
  },
});
