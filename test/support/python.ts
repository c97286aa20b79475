/** Programs of PyPI that tests drive. `make python-packages` installs them. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './journey.ts';

/** Where Jupyter and py-spy are; undefined, said out loud, where not. With CI=true an error. */
export function insidePython(): string | undefined {
  const bin = path.join(ROOT, '.cache/python/inside/bin');
  if (existsSync(path.join(bin, 'jupyter-lab')) && existsSync(path.join(bin, 'py-spy'))) return bin;
  const message = 'Jupyter and py-spy are not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return undefined;
}
