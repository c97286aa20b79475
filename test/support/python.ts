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

/** The real uv; undefined, said out loud, where it is not installed. With CI=true an error. */
export function uvProgram(): string | undefined {
  const program = path.join(ROOT, '.cache/python/environments/bin/uv');
  if (existsSync(program)) return program;
  const message = 'uv is not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return undefined;
}

/** Where schemathesis is; undefined, said out loud, where it is not. With CI=true an error. */
export function apiPython(): string | undefined {
  const bin = path.join(ROOT, '.cache/python/api/bin');
  if (existsSync(path.join(bin, 'schemathesis'))) return bin;
  const message = 'schemathesis is not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return undefined;
}
